// One block per row, one pack of eight columns per thread.
#include "ops/kernels/launch.h"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/reduce.cuh"
#include "ops/kernels/wide_rms_norm.h"

namespace antisd::inline ops {
namespace {

constexpr int N = 8;

__device__ __forceinline__ void store_floats(float* p, const float (&values)[N]) {
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    const float part[4] = {values[i], values[i + 1], values[i + 2], values[i + 3]};
    store_pack(p + i, make_pack<float>(part));
  }
}

template <typename T>
__global__ void __launch_bounds__(1024)
    forward_kernel(const float* x, const T* weight, float eps, std::int64_t rows, int width, T* y,
                   float* all_inverse_rms) {
  __shared__ float sums[2][kWarp];
  const int column = threadIdx.x * N;
  const bool inside = column < width;
  float weights[N] = {};
  if (inside) unpack(load_pack<N>(weight + column), weights);
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    float values[N] = {}, sum = 0;
    if (inside) load_floats(x + row * width + column, values);
#pragma unroll
    for (int i = 0; i < N; ++i)
      sum += values[i] * values[i];
    const float inverse_rms = rsqrtf(block_sum(sum, sums[turn]) / static_cast<float>(width) + eps);
#pragma unroll
    for (int i = 0; i < N; ++i)
      values[i] *= inverse_rms * weights[i];
    if (inside) store_pack(y + row * width + column, make_pack<T>(values));
    if (all_inverse_rms != nullptr && threadIdx.x == 0) all_inverse_rms[row] = inverse_rms;
  }
}

// With n = x r, r = inverse rms: dx = r (dy w - n mean(dy w n)) + behind, dw += dy n.
template <typename T>
__global__ void __launch_bounds__(1024)
    backward_kernel(const T* dy, const float* x, const T* weight, const float* all_inverse_rms,
                    const float* behind, std::int64_t rows, int width, float* dx, T* rounded,
                    float* partial_sums) {
  __shared__ float sums[2][kWarp];
  const int column = threadIdx.x * N;
  const bool inside = column < width;
  float weights[N] = {}, dweight[N] = {};
  if (inside) unpack(load_pack<N>(weight + column), weights);
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    float values[N] = {}, gradient[N] = {}, more[N] = {}, sum = 0;
    if (inside) {
      if (behind != nullptr) load_floats(behind + row * width + column, more);
      load_floats(x + row * width + column, values);
      unpack(load_pack<N>(dy + row * width + column), gradient);
    }
    const float inverse_rms = all_inverse_rms[row];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      values[i] *= inverse_rms;  // n
      dweight[i] += gradient[i] * values[i];
      gradient[i] *= weights[i];
      sum += gradient[i] * values[i];
    }
    const float mean = block_sum(sum, sums[turn]) / static_cast<float>(width);
#pragma unroll
    for (int i = 0; i < N; ++i)
      gradient[i] = inverse_rms * (gradient[i] - values[i] * mean) + more[i];
    if (!inside) continue;
    store_floats(dx + row * width + column, gradient);
    if (rounded != nullptr) store_pack(rounded + row * width + column, make_pack<T>(gradient));
  }
  if (inside) store_floats(partial_sums + std::int64_t{blockIdx.x} * width + column, dweight);
}

// One thread per column.
__global__ void sum_kernel(const float* partial_sums, int blocks, int width, float* dweight) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= width) return;
  float sum = 0;
#pragma unroll 8
  for (int block = 0; block < blocks; ++block)
    sum += partial_sums[std::int64_t{block} * width + column];
  dweight[column] = sum;
}

template <typename Launch>
void with_wide_element(ElementType type, const Launch& launch) {
  if (type == ElementType::kBFloat16) {
    launch(__nv_bfloat16());
  } else {
    launch(__half());
  }
}

unsigned threads_for(std::int64_t width) {
  return static_cast<unsigned>(ceil_div(width, N * kWarp) * kWarp);
}

}  // namespace

void launch_wide_rms_norm(ElementType type, const float* x, const void* weight, double eps,
                          std::int64_t rows, std::int64_t width, void* y, float* inverse_rms,
                          cudaStream_t stream) {
  if (rows == 0) return;
  with_wide_element(type, [&](auto element) {
    using T = decltype(element);
    forward_kernel<<<grid_for(rows, 1), threads_for(width), 0, stream>>>(
        x, static_cast<const T*>(weight), static_cast<float>(eps), rows, static_cast<int>(width),
        static_cast<T*>(y), inverse_rms);
  });
  check_launch("wide_rms_norm");
}

void launch_wide_rms_norm_backward(ElementType type, const void* dy, const float* x,
                                   const void* weight, const float* inverse_rms,
                                   const float* behind, std::int64_t rows, std::int64_t width,
                                   float* dx, void* rounded, float* dweight, float* workspace,
                                   cudaStream_t stream) {
  if (rows == 0) return;
  const int blocks = static_cast<int>(std::min<std::int64_t>(rows, kWideNormBlocks));
  with_wide_element(type, [&](auto element) {
    using T = decltype(element);
    backward_kernel<<<blocks, threads_for(width), 0, stream>>>(
        static_cast<const T*>(dy), x, static_cast<const T*>(weight), inverse_rms, behind, rows,
        static_cast<int>(width), dx, static_cast<T*>(rounded), workspace);
  });
  sum_kernel<<<grid_for(width, 64), 64, 0, stream>>>(workspace, blocks, static_cast<int>(width),
                                                     dweight);
  check_launch("wide_rms_norm_backward");
}

}  // namespace antisd::inline ops
