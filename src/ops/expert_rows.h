// Copies rows between tokens and their pairs (token, chosen expert), which are sorted by expert:
// the operations of a sparse layer around its matrix products.
#pragma once

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// x: [tokens, width]; places: int64 [tokens, k], a permutation of 0 .. tokens * k - 1. Returns
// [tokens * k, width]; its row places[t, j] is x[t].
at::Tensor spread_rows(const at::Tensor& x, const at::Tensor& places);

// sorted: [tokens * k, width]; weights: fp32 [tokens, k]. Returns [tokens, width], the sum over j
// of weights[t, j] * sorted[places[t, j]], accumulated in fp32.
at::Tensor combine_rows(const at::Tensor& sorted, const at::Tensor& places,
                        const at::Tensor& weights);

}  // namespace antisd::inline ops
