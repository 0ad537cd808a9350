// One token of each of a few sequences through all layers (dense_forward.h) over a paged cache.
// Rows are independent, so threads take blocks of rows and do not synchronise between layers.
#pragma once

#include <cstdint>

#include "model/causal_lm.h"

namespace antisd::inline model {

struct DecodeRows {
  std::int64_t rows = 0;
  const std::int32_t* ids = nullptr;
  const std::int32_t* positions = nullptr;
  const std::int64_t* slots = nullptr;  // see store_kv()
  const std::int32_t* pages = nullptr;  // [rows, most_pages]
  std::int64_t most_pages = 0;
};

// Returns [rows, hidden], after the last norm. Positions must be reserved in the model before
// several threads call this. Only for models that suits_dense_forward() accepts.
at::Tensor decode_block(const CausalLm& model, const KvView& cache, const DecodeRows& in);

}  // namespace antisd::inline model
