#include "ops/kernels/launch.h"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/reduce.cuh"
#include "ops/kernels/rms_norm.h"

namespace antisd::inline ops {
namespace {

template <typename T>
struct RmsNormArguments {
  const T* x;
  std::int64_t x_stride;
  const T* weight;
  float eps;
  std::int64_t rows;
  int width;
  float inverse_width;
  T* y;
  std::int64_t y_stride;
  float* inverse_rms;  // may be null
};

template <int N, typename T>
__device__ __forceinline__ float sum_of_squares(const Pack<T, N>& pack) {
  float values[N], sum = 0.0f;
  unpack(pack, values);
#pragma unroll
  for (int i = 0; i < N; ++i)
    sum += values[i] * values[i];
  return sum;
}

template <typename T>
__device__ __forceinline__ float inverse_rms_of(float sum, const RmsNormArguments<T>& a) {
  return rsqrtf(sum * a.inverse_width + a.eps);
}

template <int N, typename T>
__device__ __forceinline__ Pack<T, N> normalized(const Pack<T, N>& x, const Pack<T, N>& weight,
                                                 float inverse_rms) {
  float values[N], weights[N];
  unpack(x, values);
  unpack(weight, weights);
#pragma unroll
  for (int i = 0; i < N; ++i)
    values[i] *= inverse_rms * weights[i];
  return make_pack<T>(values);
}

// ---- rows of at most one pack per lane: heads ----

constexpr int kShortThreads = 256;
constexpr int kShortRows = 4;  // per group of lanes, loaded before the first is used

// `lanes` (a power of two up to 32) neighbours share a row; a block takes adjacent rows.
template <int N, typename T>
__global__ void __launch_bounds__(kShortThreads)
    rms_norm_short_kernel(RmsNormArguments<T> a, int lanes) {
  const int groups = kShortThreads / lanes;
  const int group = threadIdx.x / lanes, offset = threadIdx.x % lanes * N;
  const bool inside = offset < a.width;
  const Pack<T, N> weight = load_pack_if<N>(inside, a.weight + offset);
  const std::int64_t block_rows = groups * kShortRows;
  // The loop bounds are the same for the whole block, so that complete warps sum.
  for (std::int64_t first = blockIdx.x * block_rows; first < a.rows;
       first += gridDim.x * block_rows) {
    Pack<T, N> x[kShortRows];
#pragma unroll
    for (int k = 0; k < kShortRows; ++k) {
      const std::int64_t row = first + k * groups + group;
      x[k] = load_pack_if<N>(inside && row < a.rows, a.x + row * a.x_stride + offset);
    }
#pragma unroll
    for (int k = 0; k < kShortRows; ++k) {
      const std::int64_t row = first + k * groups + group;
      const float inverse_rms = inverse_rms_of(lane_sum(sum_of_squares(x[k]), lanes), a);
      if (!inside || row >= a.rows) continue;
      store_pack(a.y + row * a.y_stride + offset, normalized(x[k], weight, inverse_rms));
      if (a.inverse_rms != nullptr && offset == 0) a.inverse_rms[row] = inverse_rms;
    }
  }
}

// ---- longer rows: one block each ----

constexpr int kKeptPacks = 4;  // per thread, kept in registers from the sum to the product

template <int N, typename T>
__global__ void __launch_bounds__(1024) rms_norm_kernel(RmsNormArguments<T> a) {
  __shared__ float partial_sums[2][kWarp];
  const int packs = a.width / N, threads = blockDim.x;
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x, turn ^= 1) {
    const T* x = a.x + row * a.x_stride;
    T* y = a.y + row * a.y_stride;
    Pack<T, N> kept[kKeptPacks];
#pragma unroll
    for (int k = 0; k < kKeptPacks; ++k) {
      const int p = threadIdx.x + k * threads;
      kept[k] = load_pack_if<N>(p < packs, x + p * N);
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kKeptPacks; ++k)
      sum += sum_of_squares(kept[k]);
    // What 1024 threads cannot keep is read again below.
    for (int p = threadIdx.x + kKeptPacks * threads; p < packs; p += threads)
      sum += sum_of_squares(load_pack<N>(x + p * N));
    Pack<T, N> weights[kKeptPacks];  // loaded while the block sums
#pragma unroll
    for (int k = 0; k < kKeptPacks; ++k) {
      const int p = threadIdx.x + k * threads;
      weights[k] = load_pack_if<N>(p < packs, a.weight + p * N);
    }
    const float inverse_rms = inverse_rms_of(block_sum(sum, partial_sums[turn]), a);
#pragma unroll
    for (int k = 0; k < kKeptPacks; ++k) {
      const int p = threadIdx.x + k * threads;
      if (p < packs) store_pack(y + p * N, normalized(kept[k], weights[k], inverse_rms));
    }
    for (int p = threadIdx.x + kKeptPacks * threads; p < packs; p += threads) {
      const Pack<T, N> pack = load_pack<N>(x + p * N);
      store_pack(y + p * N, normalized(pack, load_pack<N>(a.weight + p * N), inverse_rms));
    }
    if (a.inverse_rms != nullptr && threadIdx.x == 0) a.inverse_rms[row] = inverse_rms;
  }
}

template <int N, typename T>
void start(const RmsNormArguments<T>& a, cudaStream_t stream) {
  const std::int64_t packs = a.width / N;
  if (packs <= kWarp) {
    int lanes = 1;
    while (lanes < packs)
      lanes *= 2;
    const unsigned blocks = grid_for(a.rows, kShortThreads / lanes * kShortRows);
    rms_norm_short_kernel<N><<<blocks, kShortThreads, 0, stream>>>(a, lanes);
    return;
  }
  const auto threads = static_cast<unsigned>(
      std::min<std::int64_t>(ceil_div(packs, kKeptPacks * kWarp) * kWarp, 1024));
  rms_norm_kernel<N><<<grid_for(a.rows, 1), threads, 0, stream>>>(a);
}

template <typename T>
void run(const RmsNormArguments<T>& a, cudaStream_t stream) {
  constexpr int kWide = kWidePack<T>;
  const bool wide = a.width % kWide == 0 && a.x_stride % kWide == 0 && a.y_stride % kWide == 0 &&
                    aligned_to_16(a.x, a.weight, a.y);
  (wide ? start<kWide, T> : start<1, T>)(a, stream);
}

template <typename T>
RmsNormArguments<T> arguments_of(const void* x, std::int64_t x_stride, const void* weight,
                                 double eps, std::int64_t rows, std::int64_t width, void* y,
                                 std::int64_t y_stride, float* inverse_rms) {
  return {static_cast<const T*>(x),
          x_stride,
          static_cast<const T*>(weight),
          static_cast<float>(eps),
          rows,
          static_cast<int>(width),
          1.0f / static_cast<float>(width),
          static_cast<T*>(y),
          y_stride,
          inverse_rms};
}

}  // namespace

void launch_rms_norm(ElementType type, const void* x, std::int64_t x_stride, const void* weight,
                     double eps, std::int64_t rows, std::int64_t width, void* y,
                     std::int64_t y_stride, float* inverse_rms, cudaStream_t stream) {
  if (rows == 0 || width == 0) return;
  with_element(type, [&](auto element) {
    using T = decltype(element);
    run<T>(arguments_of<T>(x, x_stride, weight, eps, rows, width, y, y_stride, inverse_rms),
           stream);
  });
  check_launch("rms_norm");
}

}  // namespace antisd::inline ops
