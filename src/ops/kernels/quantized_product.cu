// A block of warps computes kTilesM * 16 outputs for all rows of x. Its warps take every kWarps-th
// block of 64 columns; at the end their sums are added in a fixed order. Weights are the 16-row
// operand of the tensor cores, rows of x the 8 columns:
//
//   y[row, output] = sum over column of  W[output, column] x[row, column]
//
// Which columns meet in one tensor operation does not matter as long as both operands agree. So a
// lane (g = lane / 4, t = lane % 4) takes 16 adjacent columns from 16 t on, of outputs g and g + 8
// and of row g of x: codes are read in pieces of 8 (nf4) or 16 bytes and converted in registers.
#include "ops/kernels/launch.h"
#include "ops/kernels/mma.cuh"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/quantized_product.h"
#include "ops/kernels/reduce.cuh"

namespace antisd::inline ops {
namespace {

constexpr int kProductWarps = 8, kProductThreads = kProductWarps * kWarp;
constexpr int kLaneColumns = 16;  // of a block of 64

template <typename T>
struct ProductArguments {
  const T* x;
  int rows, columns, outputs;
  const unsigned char* codes;
  const float* scales;
  std::int64_t row_bytes;
  const float* residual;
  void* y;
};

// The codes of a lane's 16 columns, and their scale.
template <QuantizedKind kKind>
struct LaneCodes;

template <>
struct LaneCodes<QuantizedKind::kInt8> {
  uint4 words;
  float scale;

  template <typename T>
  __device__ __forceinline__ static LaneCodes load(const ProductArguments<T>& a, int output,
                                                   int block, int t) {
    return {load_once(a.codes + output * a.row_bytes + block * 64 + t * kLaneColumns),
            a.scales[output]};
  }
  __device__ __forceinline__ float value(int i, const float*) const {
    const unsigned word = i < 4 ? words.x : i < 8 ? words.y : i < 12 ? words.z : words.w;
    return int8_value(static_cast<signed char>(word >> (i % 4 * 8) & 0xff), scale);
  }
};

template <>
struct LaneCodes<QuantizedKind::kNf4> {
  uint2 words;
  float largest;

  template <typename T>
  __device__ __forceinline__ static LaneCodes load(const ProductArguments<T>& a, int output,
                                                   int block, int t) {
    const unsigned char* from = a.codes + output * a.row_bytes + block * 32 + t * 8;
    return {__ldg(reinterpret_cast<const uint2*>(from)),
            a.scales[output * (a.row_bytes / 32) + block]};
  }
  __device__ __forceinline__ float value(int i, const float* levels) const {
    const unsigned word = i < 8 ? words.x : words.y;
    return nf4_value(levels[word >> (i % 8 * 4) & 15], largest);
  }
};

// Pairs of elements, as the tensor cores take them.
template <typename T, QuantizedKind kKind>
__device__ __forceinline__ void convert(const LaneCodes<kKind>& codes, const float* levels,
                                        unsigned (&pairs)[kLaneColumns / 2]) {
#pragma unroll
  for (int i = 0; i < kLaneColumns / 2; ++i)
    pairs[i] = round_two<T>(codes.value(2 * i, levels), codes.value(2 * i + 1, levels));
}

template <QuantizedKind kKind, typename T, int kTilesM, int kTilesN>
__global__ void __launch_bounds__(kProductThreads) quantized_product_kernel(ProductArguments<T> a) {
  constexpr int kSums = kTilesM * kTilesN * 4;  // of a lane
  __shared__ float levels[kNf4Levels];
  __shared__ float shared[kProductWarps / 2][kSums][kWarp];
  if (threadIdx.x < kNf4Levels) levels[threadIdx.x] = nf4_level(threadIdx.x);
  __syncthreads();
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const int first = blockIdx.x * kTilesM * 16, blocks = a.columns / 64;

  // Outputs g and g + 8 of each tile; past the last one, the last one again.
  int outputs[kTilesM][2];
#pragma unroll
  for (int m = 0; m < kTilesM; ++m) {
    outputs[m][0] = min(first + m * 16 + g, a.outputs - 1);
    outputs[m][1] = min(first + m * 16 + g + 8, a.outputs - 1);
  }
  float sums[kTilesM][kTilesN][4] = {};
  LaneCodes<kKind> codes[kTilesM][2], next[kTilesM][2];
  const auto load_next = [&](int block) {
#pragma unroll
    for (int m = 0; m < kTilesM; ++m) {
      next[m][0] = LaneCodes<kKind>::load(a, outputs[m][0], block, t);
      next[m][1] = LaneCodes<kKind>::load(a, outputs[m][1], block, t);
    }
  };
  if (warp < blocks) load_next(warp);
  for (int block = warp; block < blocks; block += kProductWarps) {
    uint4 x[kTilesN][2];
#pragma unroll
    for (int n = 0; n < kTilesN; ++n) {
      const int row = n * 8 + g;
      const auto* from = reinterpret_cast<const uint4*>(a.x + std::int64_t{row} * a.columns +
                                                        block * 64 + t * kLaneColumns);
      const bool present = row < a.rows;
      x[n][0] = present ? __ldg(from) : uint4{};
      x[n][1] = present ? __ldg(from + 1) : uint4{};
    }
#pragma unroll
    for (int m = 0; m < kTilesM; ++m) {
      codes[m][0] = next[m][0];
      codes[m][1] = next[m][1];
    }
    if (block + kProductWarps < blocks) load_next(block + kProductWarps);
#pragma unroll
    for (int m = 0; m < kTilesM; ++m) {
      unsigned low[kLaneColumns / 2], high[kLaneColumns / 2];  // of outputs g and g + 8
      convert<T>(codes[m][0], levels, low);
      convert<T>(codes[m][1], levels, high);
#pragma unroll
      for (int n = 0; n < kTilesN; ++n) {
        const unsigned pairs[kLaneColumns / 2] = {x[n][0].x, x[n][0].y, x[n][0].z, x[n][0].w,
                                                  x[n][1].x, x[n][1].y, x[n][1].z, x[n][1].w};
#pragma unroll
        for (int i = 0; i < kLaneColumns / 2; i += 2)
          multiply_add<T>(sums[m][n], low[i], high[i], low[i + 1], high[i + 1], pairs[i],
                          pairs[i + 1]);
      }
    }
  }

  // The upper half of the warps gives its sums to the lower, until one is left.
  float* own = &sums[0][0][0];
  for (int half = kProductWarps / 2; half > 0; half /= 2) {
    __syncthreads();
    if (warp >= half && warp < 2 * half) {
#pragma unroll
      for (int i = 0; i < kSums; ++i)
        shared[warp - half][i][lane] = own[i];
    }
    __syncthreads();
    if (warp < half) {
#pragma unroll
      for (int i = 0; i < kSums; ++i)
        own[i] += shared[warp][i][lane];
    }
  }
  if (warp > 0) return;
#pragma unroll
  for (int m = 0; m < kTilesM; ++m) {
#pragma unroll
    for (int n = 0; n < kTilesN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int output = first + m * 16 + g + i / 2 * 8, row = n * 8 + 2 * t + i % 2;
        if (output >= a.outputs || row >= a.rows) continue;
        const std::int64_t at = std::int64_t{row} * a.outputs + output;
        if (a.residual != nullptr) {
          static_cast<float*>(a.y)[at] = a.residual[at] + sums[m][n][i];
        } else {
          const float value[1] = {sums[m][n][i]};
          store_pack(static_cast<T*>(a.y) + at, make_pack<T>(value));
        }
      }
    }
  }
}

template <QuantizedKind kKind, typename T, int kTilesM, int kTilesN>
void run_product(const ProductArguments<T>& arguments, cudaStream_t stream) {
  quantized_product_kernel<kKind, T, kTilesM, kTilesN>
      <<<grid_for(arguments.outputs, kTilesM * 16), kProductThreads, 0, stream>>>(arguments);
}

// More outputs per block where that spares reading x, as far as registers last.
template <QuantizedKind kKind, typename T>
void run_product(const ProductArguments<T>& arguments, cudaStream_t stream) {
  if (arguments.rows <= 8) {
    run_product<kKind, T, 2, 1>(arguments, stream);
  } else if (arguments.rows <= 16) {
    run_product<kKind, T, 2, 2>(arguments, stream);
  } else if (arguments.rows <= 32) {
    run_product<kKind, T, 4, 4>(arguments, stream);
  } else {
    run_product<kKind, T, 2, 8>(arguments, stream);
  }
}

template <typename T>
void run_product(const QuantizedProduct& p, cudaStream_t stream) {
  const ProductArguments<T> arguments = {static_cast<const T*>(p.x),
                                         static_cast<int>(p.rows),
                                         static_cast<int>(p.columns),
                                         static_cast<int>(p.outputs),
                                         static_cast<const unsigned char*>(p.codes),
                                         p.scales,
                                         p.row_bytes,
                                         p.residual,
                                         p.y};
  if (p.kind == QuantizedKind::kInt8) {
    run_product<QuantizedKind::kInt8>(arguments, stream);
  } else {
    run_product<QuantizedKind::kNf4>(arguments, stream);
  }
}

}  // namespace

void launch_quantized_product(const QuantizedProduct& product, cudaStream_t stream) {
  if (product.rows == 0 || product.outputs == 0) return;
  if (product.type == ElementType::kBFloat16) {
    run_product<__nv_bfloat16>(product, stream);
  } else {
    run_product<__half>(product, stream);
  }
  check_launch("quantized product");
}

}  // namespace antisd::inline ops
