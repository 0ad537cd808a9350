// Sums and maxima over the threads of a warp or block, in an order that depends only on the block
// size, so that the same input gives the same bits.
#pragma once

#include <cmath>

namespace antisd::inline ops {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

// Over groups of `lanes` consecutive lanes (a power of two, at most 32); every lane gets its
// group's sum. All 32 lanes must call it.
__device__ __forceinline__ float lane_sum(float value, int lanes = kWarp) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, offset);
  }
  return value;
}

// NaN is ignored.
__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, offset));
  }
  return value;
}

// Over `threads` consecutive threads from `begin` on, both multiples of 32, e.g. the whole block;
// every thread gets the result. `shared` has one word per warp of the block. All threads of the
// block must call it together. It has one barrier, between writing and reading `shared`: the next
// call must use another array or come after another barrier.
__device__ __forceinline__ float block_sum(float value, int begin, int threads, float* shared) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  value = lane_sum(value);
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  return lane_sum(lane < threads / kWarp ? shared[begin / kWarp + lane] : 0.0f);
}

__device__ __forceinline__ float block_sum(float value, float* shared) {
  return block_sum(value, 0, blockDim.x, shared);
}

__device__ __forceinline__ float block_max(float value, float* shared) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  value = warp_max(value);
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  return warp_max(lane * kWarp < blockDim.x ? shared[lane] : -INFINITY);
}

}  // namespace antisd::inline ops
