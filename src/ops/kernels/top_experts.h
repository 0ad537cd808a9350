#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace antisd::inline ops {

// The k largest values of each row, largest first; ties go to the lower index. values: fp32 [rows,
// width], width at most 1024; k at most width; ids: int64 [rows, k].
void launch_top_experts(const float* values, std::int64_t rows, int width, int k, std::int64_t* ids,
                        cudaStream_t stream);

}  // namespace antisd::inline ops
