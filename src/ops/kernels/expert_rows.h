#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

// Copies rows between tokens and the pairs (token, chosen expert) that are sorted by expert.
// `places`: int64 [tokens, k], the sorted row of each pair. All rows are `width` elements of
// `type`, dense.

// sorted[places[t, j]] = x[t].
void launch_spread_rows(ElementType type, const void* x, const std::int64_t* places,
                        std::int64_t tokens, int k, std::int64_t width, void* sorted,
                        cudaStream_t stream);

// y[t] = sum over j of weights[t, j] * sorted[places[t, j]], in fp32; weights fp32, or null for 1.
void launch_combine_rows(ElementType type, const void* sorted, const std::int64_t* places,
                         const float* weights, std::int64_t tokens, int k, std::int64_t width,
                         void* y, cudaStream_t stream);

// dsorted[places[t, j]] = weights[t, j] * dy[t]; dweights[t, j] = dy[t] . sorted[places[t, j]].
void launch_combine_rows_backward(ElementType type, const void* dy, const void* sorted,
                                  const std::int64_t* places, const float* weights,
                                  std::int64_t tokens, int k, std::int64_t width, void* dsorted,
                                  float* dweights, cudaStream_t stream);

}  // namespace antisd::inline ops
