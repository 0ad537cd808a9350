// The first kernel computes x a^T. Its result is small and its sums are long, so the columns are
// divided among blocks, each of which leaves its own sums in memory. The second adds them up, in
// the order of columns, rounds, and adds the product with b to y.
//
// Which columns meet in one tensor operation does not matter as long as both operands agree, so
// lanes take adjacent ones (mma.cuh has the usual places).
#include <type_traits>

#include "ops/kernels/launch.h"
#include "ops/kernels/lora.h"
#include "ops/kernels/mma.cuh"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/reduce.cuh"

namespace antisd::inline ops {
namespace {

constexpr int kLoraWarps = 8, kLoraThreads = kLoraWarps * kWarp;
constexpr int kRowTile = 64;                // rows of a block
constexpr int kUpOutputs = kLoraWarps * 8;  // outputs of a block of the second kernel
constexpr int kSplitColumns = 512, kMostSplits = 16;

std::int64_t splits_of(std::int64_t columns) {
  return std::clamp<std::int64_t>(columns / kSplitColumns, 1, kMostSplits);
}

template <typename T>
struct DownArguments {
  const T *x, *a;
  int rows, columns, ranks, splits;
  float* sums;  // [splits, rows, ranks]
};

// 16 ranks of kTilesN * 8 rows over the columns of a split; warps take every kLoraWarps-th block of
// 64 columns. A lane (g = lane / 4, t = lane % 4) takes 16 columns from 16 t on.
template <typename T, int kTilesN>
__global__ void __launch_bounds__(kLoraThreads) lora_down_kernel(DownArguments<T> p) {
  constexpr int kSums = kTilesN * 4;
  __shared__ float shared[kLoraWarps][kSums][kWarp];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const int first_rank = blockIdx.x * 16, first_row = blockIdx.z * kRowTile;
  const int blocks = p.columns / 64;
  const int begin = blocks * blockIdx.y / p.splits, end = blocks * (blockIdx.y + 1) / p.splits;
  const T* const a_low = p.a + std::int64_t{min(first_rank + g, p.ranks - 1)} * p.columns + t * 16;
  const T* const a_high =
      p.a + std::int64_t{min(first_rank + g + 8, p.ranks - 1)} * p.columns + t * 16;
  float sums[kTilesN][4] = {};
  for (int block = begin + warp; block < end; block += kLoraWarps) {
    const auto load = [&](const T* from, int half) {
      return __ldg(reinterpret_cast<const uint4*>(from + block * 64) + half);
    };
    const uint4 low[2] = {load(a_low, 0), load(a_low, 1)};
    const uint4 high[2] = {load(a_high, 0), load(a_high, 1)};
    uint4 x[kTilesN][2];
#pragma unroll
    for (int n = 0; n < kTilesN; ++n) {
      const int row = first_row + n * 8 + g;
      const T* from = p.x + std::int64_t{row} * p.columns + t * 16;
      x[n][0] = row < p.rows ? load(from, 0) : uint4{};
      x[n][1] = row < p.rows ? load(from, 1) : uint4{};
    }
#pragma unroll
    for (int n = 0; n < kTilesN; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        multiply_add<T>(sums[n], low[half].x, high[half].x, low[half].y, high[half].y, x[n][half].x,
                        x[n][half].y);
        multiply_add<T>(sums[n], low[half].z, high[half].z, low[half].w, high[half].w, x[n][half].z,
                        x[n][half].w);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kSums; ++i)
    shared[warp][i][lane] = sums[i / 4][i % 4];
  __syncthreads();
  // A warp adds up every kLoraWarps-th of a lane's sums, in the order of warps.
  for (int i = warp; i < kSums; i += kLoraWarps) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kLoraWarps; ++w)
      sum += shared[w][i][lane];
    const int rank = first_rank + g + i % 4 / 2 * 8, row = first_row + i / 4 * 8 + 2 * t + i % 2;
    if (rank < p.ranks && row < p.rows)
      p.sums[(std::int64_t{blockIdx.y} * p.rows + row) * p.ranks + rank] = sum;
  }
}

template <typename T, typename Y>
struct UpArguments {
  const float* sums;
  const T* b;
  int rows, rank, ranks, splits, parts;
  float scale;
  int first[kLoraFusedParts], outputs[kLoraFusedParts];
  T* z;
  Y* y;
  std::int64_t y_row;
};

// Two neighbouring elements.
template <typename Y>
__device__ __forceinline__ float2 load_two(const Y* y) {
  if constexpr (std::is_same_v<Y, float>) {
    return *reinterpret_cast<const float2*>(y);
  } else if constexpr (std::is_same_v<Y, __half>) {
    return __half22float2(*reinterpret_cast<const __half2*>(y));
  } else {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(y));
  }
}

template <typename Y>
__device__ __forceinline__ void store_two(Y* y, float2 two) {
  if constexpr (std::is_same_v<Y, float>) {
    *reinterpret_cast<float2*>(y) = two;
  } else {
    *reinterpret_cast<unsigned*>(y) = round_two<Y>(two.x, two.y);
  }
}

// In the order of splits. All loads are on their way before the first sum.
__device__ __forceinline__ float4 sum_of_splits(const float* sums, int stride, int splits) {
  float4 parts[kMostSplits], sum = {};
#pragma unroll
  for (int i = 0; i < kMostSplits; ++i) {
    parts[i] = {};
    if (i < splits)
      parts[i] = __ldg(reinterpret_cast<const float4*>(sums + std::int64_t{i} * stride));
  }
#pragma unroll
  for (int i = 0; i < kMostSplits; ++i)
    sum = {sum.x + parts[i].x, sum.y + parts[i].y, sum.z + parts[i].z, sum.w + parts[i].w};
  return sum;
}

// kUpOutputs outputs of one part for kRowTile rows; a warp has 8 of the outputs.
template <typename T, typename Y>
__global__ void __launch_bounds__(kLoraThreads)
    lora_up_kernel(const __grid_constant__ UpArguments<T, Y> p) {
  constexpr int kWidth = kLoraFusedRank + 8;  // eight more, so that rows begin in other banks
  __shared__ alignas(16) T z[kRowTile][kWidth];
  const int first_row = blockIdx.y * kRowTile, rows = min(kRowTile, p.rows - first_row);
  int part = 0, tile = blockIdx.x, first_b = 0;
  while (tile >= (p.outputs[part] + kUpOutputs - 1) / kUpOutputs) {
    tile -= (p.outputs[part] + kUpOutputs - 1) / kUpOutputs;
    first_b += p.outputs[part++];
  }
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  // What is in y is on its way while z is computed: a lane's pairs are at two neighbouring outputs
  // of rows g, g + 8, g + 16, ...
  constexpr int kPairs = kRowTile / 8;
  const int pair = tile * kUpOutputs + warp * 8 + 2 * t;
  const auto place = [&](int i) {
    return p.y + (first_row + i * 8 + g) * p.y_row + p.first[part] + pair;
  };
  const auto writes = [&](int i) { return i * 8 + g < rows && pair < p.outputs[part]; };
  float2 before[kPairs];
#pragma unroll
  for (int i = 0; i < kPairs; ++i)
    before[i] = writes(i) ? load_two(place(i)) : float2{};

  const int depth = (p.rank + 15) / 16 * 16, fours = depth / 4;
  for (int i = threadIdx.x; i < kRowTile * fours; i += kLoraThreads) {
    const int row = i / fours, k = i % fours * 4;
    const bool present = row < rows && k < p.rank;
    const std::int64_t at = std::int64_t{first_row + row} * p.ranks + part * p.rank + k;
    const float4 sum = present ? sum_of_splits(p.sums + at, p.rows * p.ranks, p.splits) : float4{};
    const uint2 four = {round_two<T>(sum.x * p.scale, sum.y * p.scale),
                        round_two<T>(sum.z * p.scale, sum.w * p.scale)};
    *reinterpret_cast<uint2*>(&z[row][k]) = four;
    if (tile == 0 && present) *reinterpret_cast<uint2*>(p.z + at) = four;
  }
  __syncthreads();
  if (tile * kUpOutputs + warp * 8 >= p.outputs[part]) return;
  float sums[kRowTile / 16][4] = {};
  for (int k = 4 * t; k < depth; k += 16) {
    const int output = tile * kUpOutputs + warp * 8 + g;
    const bool present = output < p.outputs[part] && k < p.rank;
    const uint2 factors = present ? __ldg(reinterpret_cast<const uint2*>(
                                        p.b + std::int64_t{first_b + output} * p.rank + k))
                                  : uint2{};
#pragma unroll
    for (int m = 0; m < kRowTile / 16; ++m) {
      const uint2 low = *reinterpret_cast<const uint2*>(&z[m * 16 + g][k]);
      const uint2 high = *reinterpret_cast<const uint2*>(&z[m * 16 + g + 8][k]);
      multiply_add<T>(sums[m], low.x, high.x, low.y, high.y, factors.x, factors.y);
    }
  }
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const float* sum = &sums[i / 2][i % 2 * 2];
    if (writes(i)) store_two(place(i), {before[i].x + sum[0], before[i].y + sum[1]});
  }
}

template <typename T>
void run_down(const DownArguments<T>& p, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(ceil_div(p.ranks, 16)), static_cast<unsigned>(p.splits),
                  static_cast<unsigned>(ceil_div(p.rows, kRowTile)));
  const auto kernel = p.rows <= 8    ? lora_down_kernel<T, 1>
                      : p.rows <= 16 ? lora_down_kernel<T, 2>
                      : p.rows <= 32 ? lora_down_kernel<T, 4>
                                     : lora_down_kernel<T, 8>;
  kernel<<<grid, kLoraThreads, 0, stream>>>(p);
}

template <typename T, typename Y>
void run_up(const LoraProduct& p, cudaStream_t stream) {
  UpArguments<T, Y> arguments = {p.sums,
                                 static_cast<const T*>(p.b),
                                 static_cast<int>(p.rows),
                                 static_cast<int>(p.rank),
                                 static_cast<int>(p.parts * p.rank),
                                 static_cast<int>(splits_of(p.columns)),
                                 p.parts,
                                 p.scale,
                                 {},
                                 {},
                                 static_cast<T*>(p.z),
                                 static_cast<Y*>(p.y),
                                 p.y_row};
  std::int64_t tiles = 0;
  for (int i = 0; i < p.parts; ++i) {
    arguments.first[i] = static_cast<int>(p.first[i]);
    arguments.outputs[i] = static_cast<int>(p.outputs[i]);
    tiles += ceil_div(p.outputs[i], kUpOutputs);
  }
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(ceil_div(p.rows, kRowTile)));
  lora_up_kernel<T, Y><<<grid, kLoraThreads, 0, stream>>>(arguments);
}

template <typename T>
void run_lora(const LoraProduct& p, cudaStream_t stream) {
  run_down<T>({static_cast<const T*>(p.x), static_cast<const T*>(p.a), static_cast<int>(p.rows),
               static_cast<int>(p.columns), static_cast<int>(p.parts * p.rank),
               static_cast<int>(splits_of(p.columns)), p.sums},
              stream);
  if (p.y_is_fp32) {
    run_up<T, float>(p, stream);
  } else {
    run_up<T, T>(p, stream);
  }
}

}  // namespace

std::int64_t lora_sums(std::int64_t rows, std::int64_t columns, std::int64_t ranks) {
  return splits_of(columns) * rows * ranks;
}

void launch_lora(const LoraProduct& product, cudaStream_t stream) {
  if (product.rows == 0) return;
  if (product.type == ElementType::kBFloat16) {
    run_lora<__nv_bfloat16>(product, stream);
  } else {
    run_lora<__half>(product, stream);
  }
  check_launch("lora");
}

}  // namespace antisd::inline ops
