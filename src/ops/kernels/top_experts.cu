#include "ops/kernels/launch.h"
#include "ops/kernels/reduce.cuh"
#include "ops/kernels/top_experts.h"

namespace antisd::inline ops {
namespace {

constexpr int kThreads = 256;

// One warp per row; lane l holds values l, l + 32, ... and drops its largest when it wins.
template <int PerLane>
__global__ void __launch_bounds__(kThreads)
    top_kernel(const float* values, std::int64_t rows, int width, int k, std::int64_t* ids) {
  const std::int64_t row = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / kWarp;
  if (row >= rows) return;
  const int lane = threadIdx.x % kWarp;
  float own[PerLane];
#pragma unroll
  for (int i = 0; i < PerLane; ++i)
    own[i] = lane + i * kWarp < width ? values[row * width + lane + i * kWarp] : -INFINITY;
  unsigned taken = 0;
  for (int j = 0; j < k; ++j) {
    float best = -INFINITY;
    int best_id = INT32_MAX;
#pragma unroll
    for (int i = 0; i < PerLane; ++i) {
      const int id = lane + i * kWarp;
      if (id >= width || taken >> i & 1) continue;
      if (own[i] > best || best_id == INT32_MAX) {
        best = own[i];
        best_id = id;
      }
    }
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, best, offset);
      const int other_id = __shfl_xor_sync(kAllLanes, best_id, offset);
      const bool wins = other_id != INT32_MAX && (best_id == INT32_MAX || other > best ||
                                                  (other == best && other_id < best_id));
      best = wins ? other : best;
      best_id = wins ? other_id : best_id;
    }
    if (best_id % kWarp == lane) taken |= 1u << (best_id / kWarp);
    if (lane == 0) ids[row * k + j] = best_id;
  }
}

}  // namespace

void launch_top_experts(const float* values, std::int64_t rows, int width, int k, std::int64_t* ids,
                        cudaStream_t stream) {
  if (rows == 0) return;
  const unsigned blocks = grid_for(rows, kThreads / kWarp);
  const auto kernel = width <= 128 ? top_kernel<4> : width <= 256 ? top_kernel<8> : top_kernel<32>;
  kernel<<<blocks, kThreads, 0, stream>>>(values, rows, width, k, ids);
  check_launch("top_experts");
}

}  // namespace antisd::inline ops
