#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace antisd::inline ops {

// places: device int32 [rows, 4]; out: device fp64 [rows]. Both must live until the kernel has run.
void launch_uniform_noise(const std::int32_t* places, std::int64_t rows, std::uint32_t key0,
                          std::uint32_t key1, double* out, cudaStream_t stream);

}  // namespace antisd::inline ops
