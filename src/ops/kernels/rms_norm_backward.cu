#include "ops/kernels/formulas.cuh"
#include "ops/kernels/launch.h"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/reduce.cuh"
#include "ops/kernels/rms_norm.h"

namespace antisd::inline ops {
namespace {

constexpr int kThreads = 512;  // at most

// dx may be dy or x: a thread reads what it needs of a row before it writes there.
template <typename T>
struct BackwardArguments {
  const T* dy;
  std::int64_t dy_stride;
  const T* x;
  std::int64_t x_stride;
  const T* weight;
  const float* inverse_rms;
  std::int64_t rows;
  int width;
  float inverse_width;
  T* dx;
  std::int64_t dx_stride;
  float* partial_sums;  // [blocks, width]: each block's share of dweight
};

template <int N, typename T>
__device__ __forceinline__ float sum_of_products(const Pack<T, N>& dy, const Pack<T, N>& weight,
                                                 const Pack<T, N>& x) {
  float d[N], w[N], v[N], sum = 0.0f;
  unpack(dy, d);
  unpack(weight, w);
  unpack(x, v);
#pragma unroll
  for (int i = 0; i < N; ++i)
    sum += d[i] * w[i] * v[i];
  return sum;
}

// dx of a pack; adds its part of dweight to `sums`.
template <int N, typename T>
__device__ __forceinline__ Pack<T, N> gradient_of(const Pack<T, N>& dy, const Pack<T, N>& weight,
                                                  const Pack<T, N>& x, float inverse_rms,
                                                  float mean, float (&sums)[N]) {
  float d[N], w[N], v[N];
  unpack(dy, d);
  unpack(weight, w);
  unpack(x, v);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    sums[i] += d[i] * (v[i] * inverse_rms);
    d[i] = rms_norm_gradient(d[i] * w[i], v[i], inverse_rms, mean);
  }
  return make_pack<T>(d);
}

// A thread's part of one row; zeros past the row's end and past the last row.
template <int N, int kPacks, typename T>
struct RowShare {
  Pack<T, N> dy[kPacks], x[kPacks];
  float inverse_rms;
};

template <int N, int kPacks, typename T>
__device__ __forceinline__ RowShare<N, kPacks, T> load_share(const BackwardArguments<T>& a,
                                                             std::int64_t row, int lane,
                                                             int lanes) {
  RowShare<N, kPacks, T> share;
  const bool inside = row < a.rows;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int offset = (lane + k * lanes) * N;
    const bool present = inside && offset < a.width;
    share.dy[k] = load_pack_if<N>(present, a.dy + row * a.dy_stride + offset);
    share.x[k] = load_pack_if<N>(present, a.x + row * a.x_stride + offset);
  }
  share.inverse_rms = inside ? a.inverse_rms[row] : 0.0f;
  return share;
}

// `lanes` neighbouring threads share a row (a power of two up to 32, or a multiple of 32), so a
// block takes blockDim / lanes rows at a time, then those gridDim times as many further on. Each
// thread sums dweight for its columns over all its rows in registers. Up to kPacks = 2, the next
// rows are fetched while the current ones are summed.
template <int N, int kPacks, typename T>
__global__ void __launch_bounds__(kThreads, kPacks == 1 ? 2 : 1)
    rms_norm_backward_kernel(BackwardArguments<T> a, int lanes) {
  constexpr bool kFetchNext = kPacks <= 2;
  __shared__ float row_sums[2][kThreads / kWarp];
  __shared__ float column_sums[kPacks == 1 ? kThreads * N : 1];
  const int groups = blockDim.x / lanes, group = threadIdx.x / lanes, lane = threadIdx.x % lanes;
  float dweight[kPacks][N] = {};
  const std::int64_t step = std::int64_t{gridDim.x} * groups;
  std::int64_t first = std::int64_t{blockIdx.x} * groups;
  // With four packs per thread, keeping the weights in registers too would spill.
  const auto load_weight = [&](int k) {
    const int offset = (lane + k * lanes) * N;
    return load_pack_if<N>(offset < a.width, a.weight + offset);
  };
  Pack<T, N> weights[kPacks];
#pragma unroll
  for (int k = 0; kFetchNext && k < kPacks; ++k)
    weights[k] = load_weight(k);
  const auto weight_of = [&](int k) { return kFetchNext ? weights[k] : load_weight(k); };
  RowShare<N, kPacks, T> share;
  if (kFetchNext) share = load_share<N, kPacks>(a, first + group, lane, lanes);
  // The loop bounds are the same for the whole block: all threads reach the barrier.
  for (int turn = 0; first < a.rows; first += step, turn ^= 1) {
    const std::int64_t row = first + group;
    RowShare<N, kPacks, T> next;
    if (kFetchNext) {
      next = load_share<N, kPacks>(a, row + step, lane, lanes);
    } else {
      share = load_share<N, kPacks>(a, row, lane, lanes);
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      sum += sum_of_products(share.dy[k], weight_of(k), share.x[k]);
    }
    sum = lanes <= kWarp ? lane_sum(sum, lanes)
                         : block_sum(sum, group * lanes, lanes, row_sums[turn]);
    const float mean = sum * share.inverse_rms * a.inverse_width;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int offset = (lane + k * lanes) * N;
      if (row >= a.rows || offset >= a.width) continue;
      store_pack(
          a.dx + row * a.dx_stride + offset,
          gradient_of(share.dy[k], weight_of(k), share.x[k], share.inverse_rms, mean, dweight[k]));
    }
    if (kFetchNext) share = next;
  }
  float* out = a.partial_sums + std::int64_t{blockIdx.x} * a.width;
  if (groups == 1) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int offset = (lane + k * lanes) * N;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (offset < a.width) out[offset + i] = dweight[k][i];
      }
    }
    return;
  }
  // Several groups occur only with one pack per thread.
#pragma unroll
  for (int i = 0; i < N; ++i)
    column_sums[kPacks == 1 ? threadIdx.x * N + i : 0] = dweight[0][i];
  __syncthreads();
  for (int column = threadIdx.x; column < a.width; column += blockDim.x) {
    float sum = 0.0f;
    for (int g = 0; g < groups; ++g)
      sum += column_sums[g * lanes * N + column];
    out[column] = sum;
  }
}

// Rows of any length: nothing stays in registers; each thread adds to its own columns of the
// block's partial sums.
template <int N, typename T>
__global__ void __launch_bounds__(kThreads) rms_norm_backward_long_kernel(BackwardArguments<T> a) {
  __shared__ float row_sums[2][kThreads / kWarp];
  const int begin = threadIdx.x * N, step = blockDim.x * N;
  float* out = a.partial_sums + std::int64_t{blockIdx.x} * a.width;
  for (int offset = begin; offset < a.width; offset += step) {
    for (int i = 0; i < N; ++i)
      out[offset + i] = 0.0f;
  }
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x, turn ^= 1) {
    const T* dy = a.dy + row * a.dy_stride;
    const T* x = a.x + row * a.x_stride;
    float sum = 0.0f;
    for (int offset = begin; offset < a.width; offset += step) {
      sum += sum_of_products(load_pack<N>(dy + offset), load_pack<N>(a.weight + offset),
                             load_pack<N>(x + offset));
    }
    const float inverse_rms = a.inverse_rms[row];
    const float mean = block_sum(sum, row_sums[turn]) * inverse_rms * a.inverse_width;
    for (int offset = begin; offset < a.width; offset += step) {
      float dweight[N];
#pragma unroll
      for (int i = 0; i < N; ++i)
        dweight[i] = out[offset + i];
      store_pack(a.dx + row * a.dx_stride + offset,
                 gradient_of(load_pack<N>(dy + offset), load_pack<N>(a.weight + offset),
                             load_pack<N>(x + offset), inverse_rms, mean, dweight));
#pragma unroll
      for (int i = 0; i < N; ++i)
        out[offset + i] = dweight[i];
    }
  }
}

// dweight += the blocks' partial sums: 32 columns per block, each by 32 threads whose sums are then
// added in order.
__global__ void __launch_bounds__(kWarp* kWarp)
    add_partial_sums_kernel(const float* partial_sums, int blocks, int width, float* dweight) {
  __shared__ float sums[kWarp][kWarp];
  const int column = blockIdx.x * kWarp + threadIdx.x;
  float sum = 0.0f;
  if (column < width) {
#pragma unroll 4
    for (int b = threadIdx.y; b < blocks; b += kWarp) {
      sum += partial_sums[std::int64_t{b} * width + column];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  for (int i = 1; i < kWarp; ++i)
    sum += sums[i][threadIdx.x];
  dweight[column] += sum;
}

template <int N, int kPacks, typename T>
int start_kept(const BackwardArguments<T>& a, cudaStream_t stream) {
  const auto packs = static_cast<int>(ceil_div(a.width / N, kPacks));
  int lanes = 1;
  while (lanes < packs)
    lanes = lanes < kWarp ? lanes * 2 : lanes + kWarp;
  const int groups = kPacks == 1 ? kThreads / lanes : 1;
  const auto blocks =
      static_cast<int>(std::min<std::int64_t>(ceil_div(a.rows, groups), kRmsNormBackwardBlocks));
  rms_norm_backward_kernel<N, kPacks><<<blocks, groups * lanes, 0, stream>>>(a, lanes);
  return blocks;
}

// Returns the number of rows of partial sums.
template <int N, typename T>
int start(const BackwardArguments<T>& a, cudaStream_t stream) {
  const int packs = a.width / N;
  if (packs <= kThreads) return start_kept<N, 1>(a, stream);
  if (packs <= 2 * kThreads) return start_kept<N, 2>(a, stream);
  if (packs <= 4 * kThreads) return start_kept<N, 4>(a, stream);
  const auto blocks = static_cast<int>(std::min<std::int64_t>(a.rows, kRmsNormBackwardBlocks));
  rms_norm_backward_long_kernel<N><<<blocks, kThreads, 0, stream>>>(a);
  return blocks;
}

template <typename T>
int run(const BackwardArguments<T>& a, cudaStream_t stream) {
  constexpr int kWide = kWidePack<T>;
  const bool wide = a.width % kWide == 0 && a.dy_stride % kWide == 0 && a.x_stride % kWide == 0 &&
                    a.dx_stride % kWide == 0 && aligned_to_16(a.dy, a.x, a.weight, a.dx);
  return wide ? start<kWide>(a, stream) : start<1>(a, stream);
}

}  // namespace

void launch_rms_norm_backward(ElementType type, const void* dy, std::int64_t dy_stride,
                              const void* x, std::int64_t x_stride, const void* weight,
                              const float* inverse_rms, std::int64_t rows, std::int64_t width,
                              void* dx, std::int64_t dx_stride, float* dweight, float* workspace,
                              cudaStream_t stream) {
  if (rows == 0 || width == 0) return;
  const int blocks = with_element(type, [&](auto element) {
    using T = decltype(element);
    const BackwardArguments<T> arguments = {static_cast<const T*>(dy),
                                            dy_stride,
                                            static_cast<const T*>(x),
                                            x_stride,
                                            static_cast<const T*>(weight),
                                            inverse_rms,
                                            rows,
                                            static_cast<int>(width),
                                            1.0f / static_cast<float>(width),
                                            static_cast<T*>(dx),
                                            dx_stride,
                                            workspace};
    return run(arguments, stream);
  });
  check_launch("rms_norm_backward");
  add_partial_sums_kernel<<<grid_for(width, kWarp), dim3(kWarp, kWarp), 0, stream>>>(
      workspace, blocks, static_cast<int>(width), dweight);
  check_launch("rms_norm_backward, second part");
}

}  // namespace antisd::inline ops
