// Low-rank adapters of a linear map (LoRA): what they add to its product, with gradients.
//
//   at::Tensor qkv = linear(x, weight, bias);
//   qkv = add_lora(qkv, x, adapter, LoraSum::kInPlace);   // qkv + scale (x a^T) b^T
//
// A weight in memory may be several matrices on disk, each with an adapter of its own: queries,
// keys and values. Their down-projections are one matrix here, since they read the same input; each
// up-projection adds to the columns of its own matrix.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// Rows of the weight, which are columns of its product.
struct LoraPart {
  std::int64_t first_row = 0, rows = 0;
};

struct LoraWeights {
  at::Tensor
      a;  // [parts * rank, in]: part i has rows [i rank, (i + 1) rank); experts: [experts, ..]
  at::Tensor b;  // [rows of all parts, rank], part after part; experts: [experts, .., rank]
  std::vector<LoraPart> parts;
  double scale = 1;  // alpha / rank

  std::int64_t rank() const { return b.size(-1); }
};

enum class LoraSum {
  kInPlace,  // into y's memory
  kNew,      // into new memory
  kLeftOut,  // y as it is, with the gradients of the sum: its value is not read
};

// x: [tokens, in]; y: [tokens, out], in x's precision or fp32. On a CPU a row's result does not
// depend on the other rows, and sums have one order, for any number of threads.
at::Tensor add_lora(const at::Tensor& y, const at::Tensor& x, const LoraWeights& lora, LoraSum sum);

}  // namespace antisd::inline ops
