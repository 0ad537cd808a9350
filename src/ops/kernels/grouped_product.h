#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

// The products of a linear map per expert, over rows that are sorted by expert: bf16 or fp16 with
// sums in fp32, on every GPU from compute capability 8.0 on. Nothing is read back from the device,
// so they can be captured. Sums have one order; a row's result does not depend on other rows.
struct GroupedShape {
  int rows;     // of all experts together
  int experts;  // ends: int32 [experts], one past each expert's last row; the last one is `rows`
  int in, out;  // any; 16-byte copies need multiples of 8
};

// y[rows of e] = x[rows of e] w[e]^T; x [rows, in], w [experts, out, in], y [rows, out].
void launch_grouped_product(ElementType type, const GroupedShape& shape, const void* x,
                            const void* w, const std::int32_t* ends, void* y, cudaStream_t stream);

// dx[rows of e] = dy[rows of e] w[e].
void launch_grouped_input_gradient(ElementType type, const GroupedShape& shape, const void* dy,
                                   const void* w, const std::int32_t* ends, void* dx,
                                   cudaStream_t stream);

// dw[e] = dy[rows of e]^T x[rows of e]; zeros for an expert without rows.
void launch_grouped_weight_gradient(ElementType type, const GroupedShape& shape, const void* dy,
                                    const void* x, const std::int32_t* ends, void* dw,
                                    cudaStream_t stream);

}  // namespace antisd::inline ops
