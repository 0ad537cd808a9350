#include "ops/kernels/philox.cuh"
#include "ops/kernels/uniform_noise.h"

namespace antisd::inline ops {
namespace {

__global__ void uniform_noise_kernel(const uint4* places, std::int64_t rows, uint2 key,
                                     double* out) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const uint4 words = philox_4x32_10(places[row], key);
  const std::uint64_t bits = std::uint64_t{words.y} << 32 | words.x;
  out[row] = static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

void launch_uniform_noise(const std::int32_t* places, std::int64_t rows, std::uint32_t key0,
                          std::uint32_t key1, double* out, cudaStream_t stream) {
  if (rows == 0) return;
  constexpr int kThreads = 256;
  const auto blocks = static_cast<unsigned>((rows + kThreads - 1) / kThreads);
  // A row has 16 bytes and the allocator aligns to more, so it is read as one 4-word vector.
  uniform_noise_kernel<<<blocks, kThreads, 0, stream>>>(reinterpret_cast<const uint4*>(places),
                                                        rows, make_uint2(key0, key1), out);
}

}  // namespace antisd::inline ops
