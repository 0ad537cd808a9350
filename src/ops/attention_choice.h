// Which code computes attention on a GPU, by card, cuDNN's version and the batch's shape.
#pragma once

#include <string>

#include "ops/attention.h"

namespace antisd::inline ops {

struct AttentionCard {
  int capability = 0;      // 90: compute capability 9.0
  std::int64_t cudnn = 0;  // 91900: 9.19.0; 0: none
};

// q: [queries, heads, head_dim].
AttentionCode choose_attention(const AttentionCard& card, const at::Tensor& q,
                               const AttentionLayout& layout, std::int64_t window);

// The backward pass of one that ran forward on kRagged. `prefix`: some sequence has more keys than
// queries; `too_long`: one is too long for cuDNN's fixed order (backward_runs).
AttentionCode choose_ragged_backward(SumOrder sums, std::int64_t window, bool prefix,
                                     bool too_long);

// For `doctor`: "cuDNN 9.19.0 from 512 tokens on, ...".
std::string attention_text(const AttentionCard& card);

// Whether batches of any lengths may run on cuDNN on this device, with heads of such a size. False
// for a device without a number, which stands for cards that are not here.
bool may_be_ragged(at::Device device, at::ScalarType dtype, std::int64_t head_dim);

#ifdef ANTISD_CUDA
AttentionCard attention_card(int device);  // asked once for each
#endif

}  // namespace antisd::inline ops
