#include "ops/kernels/launch.h"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/quantized_weight.h"
#include "ops/kernels/reduce.cuh"

namespace antisd::inline ops {
namespace {

constexpr int kQuantizeThreads = 256;
constexpr int kEight = 8;  // elements that a thread dequantises: 16 bytes of 16-bit values

template <typename T>
__device__ __forceinline__ float load_one(const T* p) {
  float value[1];
  unpack(load_pack<1>(p), value);
  return value[0];
}

__device__ __forceinline__ float warp_largest(float largest) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    largest = larger_magnitude(largest, __shfl_xor_sync(kAllLanes, largest, offset));
  return largest;
}

// A block of threads takes a row.
template <typename T>
__global__ void __launch_bounds__(kQuantizeThreads)
    quantize_int8_kernel(const T* values, std::int64_t rows, std::int64_t columns,
                         std::int64_t row_bytes, signed char* codes, float* scales) {
  __shared__ float shared[kQuantizeThreads / kWarp];
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = values + row * columns;
    float largest = 0.0f;
    for (std::int64_t i = threadIdx.x; i < columns; i += kQuantizeThreads)
      largest = larger_magnitude(largest, load_one(from + i));
    largest = warp_largest(largest);
    __syncthreads();  // the row before has been read
    if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = largest;
    __syncthreads();
    for (int warp = 0; warp < kQuantizeThreads / kWarp; ++warp)
      largest = larger_magnitude(largest, shared[warp]);
    const float scale = int8_scale(largest);
    if (threadIdx.x == 0) scales[row] = scale;
    for (std::int64_t i = threadIdx.x; i < row_bytes; i += kQuantizeThreads) {
      codes[row * row_bytes + i] =
          static_cast<signed char>(i < columns ? int8_code(load_one(from + i), scale) : 0);
    }
  }
}

// A warp takes a block of 64 elements, a lane two of them: a byte of codes.
template <typename T>
__global__ void __launch_bounds__(kQuantizeThreads)
    quantize_nf4_kernel(const T* values, std::int64_t rows, std::int64_t columns,
                        std::int64_t row_bytes, unsigned char* codes, float* scales) {
  constexpr int kWarps = kQuantizeThreads / kWarp;
  static_assert(kNf4Block == 2 * kWarp);
  const std::int64_t blocks = row_bytes / kWarp;  // of a row
  const int lane = threadIdx.x % kWarp;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; i < rows * blocks;
       i += std::int64_t{gridDim.x} * kWarps) {
    const std::int64_t row = i / blocks, column = i % blocks * kNf4Block + 2 * lane;
    const T* from = values + row * columns + column;
    const float low = column < columns ? load_one(from) : 0.0f;
    const float high = column + 1 < columns ? load_one(from + 1) : 0.0f;
    const float largest = warp_largest(larger_magnitude(fabsf(low), high));
    if (lane == 0) scales[i] = largest;
    codes[i * kWarp + lane] =
        static_cast<unsigned char>(nf4_code(low, largest) | nf4_code(high, largest) << 4);
  }
}

template <typename T>
__device__ __forceinline__ void store_eight(T* p, const float (&values)[kEight]) {
  if constexpr (sizeof(T) == sizeof(float)) {
    const float first[4] = {values[0], values[1], values[2], values[3]};
    const float second[4] = {values[4], values[5], values[6], values[7]};
    store_pack(p, make_pack<float>(first));
    store_pack(p + 4, make_pack<float>(second));
  } else {
    store_pack(p, make_pack<T>(values));
  }
}

// Numbers of threads are below 2^32, whose division is cheap.
template <QuantizedKind kKind, typename T>
__global__ void __launch_bounds__(kQuantizeThreads)
    dequantize_kernel(const unsigned char* codes, const float* scales, unsigned eights,
                      unsigned row_eights, std::int64_t row_bytes, T* values) {
  __shared__ float levels[kNf4Levels];
  if (threadIdx.x < kNf4Levels) levels[threadIdx.x] = nf4_level(threadIdx.x);
  __syncthreads();
  const unsigned step = gridDim.x * kQuantizeThreads;
  for (unsigned i = blockIdx.x * kQuantizeThreads + threadIdx.x; i < eights; i += step) {
    const unsigned row = i / row_eights, eight = i % row_eights;
    const unsigned char* from = codes + row * row_bytes;
    float out[kEight];
    if constexpr (kKind == QuantizedKind::kInt8) {
      const uint2 words = *reinterpret_cast<const uint2*>(from + std::int64_t{eight} * kEight);
      const float scale = scales[row];
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        const unsigned word = j < 4 ? words.x : words.y;
        out[j] = int8_value(static_cast<signed char>(word >> (j % 4 * 8) & 0xff), scale);
      }
    } else {
      const unsigned word =
          *reinterpret_cast<const unsigned*>(from + std::int64_t{eight} * (kEight / 2));
      const float largest =
          scales[row * (row_bytes / (kNf4Block / 2)) + eight / (kNf4Block / kEight)];
#pragma unroll
      for (int j = 0; j < kEight; ++j)
        out[j] = nf4_value(levels[word >> (j * 4) & 15], largest);
    }
    store_eight(values + std::int64_t{i} * kEight, out);
  }
}

// One element a thread.
template <QuantizedKind kKind, typename T>
__global__ void __launch_bounds__(kQuantizeThreads)
    dequantize_any_kernel(const unsigned char* codes, const float* scales, std::int64_t rows,
                          std::int64_t columns, std::int64_t row_bytes, T* values) {
  const std::int64_t step = std::int64_t{gridDim.x} * kQuantizeThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kQuantizeThreads + threadIdx.x;
       i < rows * columns; i += step) {
    const std::int64_t row = i / columns, column = i % columns;
    const unsigned char* from = codes + row * row_bytes;
    float out[1];
    if constexpr (kKind == QuantizedKind::kInt8) {
      out[0] = int8_value(static_cast<signed char>(from[column]), scales[row]);
    } else {
      const int code = from[column / 2] >> (column % 2 * 4) & 15;
      out[0] = nf4_value(nf4_level(code),
                         scales[row * (row_bytes / (kNf4Block / 2)) + column / kNf4Block]);
    }
    store_pack(values + i, make_pack<T>(out));
  }
}

template <QuantizedKind kKind, typename T>
void dequantize_rows(const void* codes, const float* scales, std::int64_t rows,
                     std::int64_t columns, std::int64_t row_bytes, void* values,
                     cudaStream_t stream) {
  const auto* bytes = static_cast<const unsigned char*>(codes);
  auto* to = static_cast<T*>(values);
  constexpr std::int64_t kMostEights = 0x7fffffff;
  if (columns % kEight == 0 && rows * columns / kEight <= kMostEights &&
      aligned_to_16(codes, values)) {
    const auto eights = static_cast<unsigned>(rows * columns / kEight);
    dequantize_kernel<kKind><<<grid_for(eights, kQuantizeThreads), kQuantizeThreads, 0, stream>>>(
        bytes, scales, eights, static_cast<unsigned>(columns / kEight), row_bytes, to);
  } else {
    dequantize_any_kernel<kKind>
        <<<grid_for(rows * columns, kQuantizeThreads), kQuantizeThreads, 0, stream>>>(
            bytes, scales, rows, columns, row_bytes, to);
  }
}

}  // namespace

void launch_quantize(QuantizedKind kind, ElementType type, const void* values, std::int64_t rows,
                     std::int64_t columns, std::int64_t row_bytes, void* codes, float* scales,
                     cudaStream_t stream) {
  if (rows == 0) return;
  with_element(type, [&](auto element) {
    using T = decltype(element);
    const auto* from = static_cast<const T*>(values);
    if (kind == QuantizedKind::kInt8) {
      quantize_int8_kernel<<<grid_for(rows, 1), kQuantizeThreads, 0, stream>>>(
          from, rows, columns, row_bytes, static_cast<signed char*>(codes), scales);
    } else {
      quantize_nf4_kernel<<<grid_for(rows * row_bytes, kQuantizeThreads), kQuantizeThreads, 0,
                            stream>>>(from, rows, columns, row_bytes,
                                      static_cast<unsigned char*>(codes), scales);
    }
  });
  check_launch("quantize");
}

void launch_dequantize(QuantizedKind kind, const void* codes, const float* scales,
                       std::int64_t rows, std::int64_t columns, std::int64_t row_bytes,
                       ElementType type, void* values, cudaStream_t stream) {
  if (rows == 0) return;
  with_element(type, [&](auto element) {
    using T = decltype(element);
    if (kind == QuantizedKind::kInt8) {
      dequantize_rows<QuantizedKind::kInt8, T>(codes, scales, rows, columns, row_bytes, values,
                                               stream);
    } else {
      dequantize_rows<QuantizedKind::kNf4, T>(codes, scales, rows, columns, row_bytes, values,
                                              stream);
    }
  });
  check_launch("dequantize");
}

}  // namespace antisd::inline ops
