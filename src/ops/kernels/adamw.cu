#include "ops/kernels/adamw.h"
#include "ops/kernels/launch.h"
#include "ops/kernels/pack.cuh"

namespace antisd::inline ops {
namespace {

constexpr int kThreads = 256;

template <int N>
__device__ __forceinline__ void store_floats(float* p, const float (&values)[N]) {
  constexpr int kStep = N < 4 ? 1 : 4;
#pragma unroll
  for (int i = 0; i < N; i += kStep) {
    float part[kStep];
#pragma unroll
    for (int j = 0; j < kStep; ++j)
      part[j] = values[i + j];
    store_pack(p + i, make_pack<float>(part));
  }
}

template <typename T, int N>
__device__ __forceinline__ void load_values(const T* p, float (&values)[N]) {
  if constexpr (sizeof(T) == sizeof(float)) {
    load_floats(p, values);
  } else {
    unpack(load_pack<N>(p), values);
  }
}

// A thread processes N elements: one pack of 16-bit elements and two of each fp32 array, all loaded
// before the first is used. 28 bytes of traffic per element with 16-bit weights and gradients.
template <int N, typename Weight, typename Gradient>
__global__ void __launch_bounds__(kThreads)
    adamw_kernel(Weight* weight, float* master, const Gradient* gradient, float* first,
                 float* second, std::uint64_t packs, AdamWFactors factors) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t p = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; p < packs; p += step) {
    const std::uint64_t at = p * N;
    float g[N], w[N], m[N], v[N];
    load_values(gradient + at, g);
    load_floats(master + at, w);
    load_floats(first + at, m);
    load_floats(second + at, v);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const AdamWElement after = adamw_element(g[i], {w[i], m[i], v[i]}, factors);
      w[i] = after.weight;
      m[i] = after.first;
      v[i] = after.second;
    }
    store_floats(master + at, w);
    store_floats(first + at, m);
    store_floats(second + at, v);
    if constexpr (sizeof(Weight) != sizeof(float)) store_pack(weight + at, make_pack<Weight>(w));
  }
}

template <typename Weight, typename Gradient>
void run(void* weight, float* master, const void* gradient, float* first, float* second,
         std::int64_t count, const AdamWFactors& factors, cudaStream_t stream) {
  constexpr int kWide = 8;
  const bool wide = count % kWide == 0 && aligned_to_16(weight, master, gradient, first, second);
  const std::int64_t packs = wide ? count / kWide : count;
  const auto kernel =
      wide ? adamw_kernel<kWide, Weight, Gradient> : adamw_kernel<1, Weight, Gradient>;
  kernel<<<grid_for(packs, kThreads), kThreads, 0, stream>>>(static_cast<Weight*>(weight), master,
                                                             static_cast<const Gradient*>(gradient),
                                                             first, second, packs, factors);
}

}  // namespace

void launch_adamw(ElementType weight_type, void* weight, float* master, ElementType gradient_type,
                  const void* gradient, float* first, float* second, std::int64_t count,
                  const AdamWFactors& factors, cudaStream_t stream) {
  if (count == 0) return;
  with_element(weight_type, [&](auto weight_element) {
    with_element(gradient_type, [&](auto gradient_element) {
      run<decltype(weight_element), decltype(gradient_element)>(weight, master, gradient, first,
                                                                second, count, factors, stream);
    });
  });
  check_launch("adamw");
}

}  // namespace antisd::inline ops
