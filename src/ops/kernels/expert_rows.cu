// One block per token, so that a token's own row stays in registers or the L1 cache while its k
// rows are streamed.
#include <type_traits>

#include "ops/kernels/expert_rows.h"
#include "ops/kernels/launch.h"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/reduce.cuh"

namespace antisd::inline ops {
namespace {

constexpr int kThreads = 256;

template <int N, typename T>
__global__ void __launch_bounds__(kThreads)
    spread_kernel(const T* x, const std::int64_t* places, int k, std::int64_t width, T* sorted) {
  const std::int64_t token = blockIdx.x;
  for (std::int64_t i = threadIdx.x * N; i < width; i += kThreads * N) {
    const Pack<T, N> pack = load_pack<N>(x + token * width + i);
    for (int j = 0; j < k; ++j)
      store_pack(sorted + places[token * k + j] * width + i, pack);
  }
}

template <int N, typename T>
__global__ void __launch_bounds__(kThreads)
    combine_kernel(const T* sorted, const std::int64_t* places, const float* weights, int k,
                   std::int64_t width, T* y) {
  const std::int64_t token = blockIdx.x;
  for (std::int64_t i = threadIdx.x * N; i < width; i += kThreads * N) {
    float sum[N] = {};
#pragma unroll 4
    for (int j = 0; j < k; ++j) {
      float row[N];
      unpack(load_pack<N>(sorted + places[token * k + j] * width + i), row);
      const float weight = weights == nullptr ? 1.0f : weights[token * k + j];
#pragma unroll
      for (int n = 0; n < N; ++n)
        sum[n] += weight * row[n];
    }
    store_pack(y + token * width + i, make_pack<T>(sum));
  }
}

// One warp per expert of the token, so that none waits for another.
template <int N, typename T>
__global__ void __launch_bounds__(kThreads)
    combine_backward_kernel(const T* dy, const T* sorted, const std::int64_t* places,
                            const float* weights, int k, std::int64_t width, T* dsorted,
                            float* dweights) {
  const std::int64_t token = blockIdx.x;
  for (int j = threadIdx.x / kWarp; j < k; j += kThreads / kWarp) {
    const std::int64_t row = places[token * k + j] * width;
    const float weight = weights[token * k + j];
    float dot = 0;
#pragma unroll 4
    for (std::int64_t i = threadIdx.x % kWarp * N; i < width; i += kWarp * N) {
      float gradient[N], value[N];
      unpack(load_pack<N>(dy + token * width + i), gradient);
      unpack(load_pack<N>(sorted + row + i), value);
#pragma unroll
      for (int n = 0; n < N; ++n) {
        dot += gradient[n] * value[n];
        gradient[n] *= weight;
      }
      store_pack(dsorted + row + i, make_pack<T>(gradient));
    }
    dot = lane_sum(dot);
    if (threadIdx.x % kWarp == 0) dweights[token * k + j] = dot;
  }
}

// Calls launch(element, pack size) for the widest packs that the rows allow.
template <typename Launch, typename... Pointers>
void with_packs(ElementType type, std::int64_t width, const Launch& launch, Pointers... rows) {
  with_element(type, [&](auto element) {
    using T = decltype(element);
    if (width % kWidePack<T> == 0 && aligned_to_16(rows...)) {
      launch(element, std::integral_constant<int, kWidePack<T>>());
    } else {
      launch(element, std::integral_constant<int, 1>());
    }
  });
}

}  // namespace

void launch_spread_rows(ElementType type, const void* x, const std::int64_t* places,
                        std::int64_t tokens, int k, std::int64_t width, void* sorted,
                        cudaStream_t stream) {
  if (tokens == 0) return;
  with_packs(
      type, width,
      [&](auto element, auto pack) {
        using T = decltype(element);
        spread_kernel<decltype(pack)::value><<<grid_for(tokens, 1), kThreads, 0, stream>>>(
            static_cast<const T*>(x), places, k, width, static_cast<T*>(sorted));
      },
      x, sorted);
  check_launch("spread_rows");
}

void launch_combine_rows(ElementType type, const void* sorted, const std::int64_t* places,
                         const float* weights, std::int64_t tokens, int k, std::int64_t width,
                         void* y, cudaStream_t stream) {
  if (tokens == 0) return;
  with_packs(
      type, width,
      [&](auto element, auto pack) {
        using T = decltype(element);
        combine_kernel<decltype(pack)::value><<<grid_for(tokens, 1), kThreads, 0, stream>>>(
            static_cast<const T*>(sorted), places, weights, k, width, static_cast<T*>(y));
      },
      sorted, y);
  check_launch("combine_rows");
}

void launch_combine_rows_backward(ElementType type, const void* dy, const void* sorted,
                                  const std::int64_t* places, const float* weights,
                                  std::int64_t tokens, int k, std::int64_t width, void* dsorted,
                                  float* dweights, cudaStream_t stream) {
  if (tokens == 0) return;
  with_packs(
      type, width,
      [&](auto element, auto pack) {
        using T = decltype(element);
        combine_backward_kernel<decltype(pack)::value>
            <<<grid_for(tokens, 1), kThreads, 0, stream>>>(
                static_cast<const T*>(dy), static_cast<const T*>(sorted), places, weights, k, width,
                static_cast<T*>(dsorted), dweights);
      },
      dy, sorted, dsorted);
  check_launch("combine_rows_backward");
}

}  // namespace antisd::inline ops
