#include "ops/kernels/formulas.cuh"
#include "ops/kernels/launch.h"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/swiglu.h"

namespace antisd::inline ops {
namespace {

constexpr int kThreads = 256;
constexpr int kPacks = 2;  // per thread, loaded before the first is used

// The pack of y at p is in row p / row_packs; its gate is row * width elements further on, because
// the rows before it are twice as long there, and its up another width after that.
template <int N, typename T>
__global__ void __launch_bounds__(kThreads)
    swiglu_kernel(const T* gate_up, std::uint64_t packs, std::uint64_t width, T* y) {
  const std::uint64_t row_packs = width / N;
  const std::uint64_t step = std::uint64_t{gridDim.x} * (kThreads * kPacks);
  for (std::uint64_t first = std::uint64_t{blockIdx.x} * (kThreads * kPacks) + threadIdx.x;
       first < packs; first += step) {
    Pack<T, N> gates[kPacks], ups[kPacks];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const std::uint64_t p = first + k * kThreads;
      const T* gate = gate_up + p * N + p / row_packs * width;
      gates[k] = load_pack_if<N>(p < packs, gate);
      ups[k] = load_pack_if<N>(p < packs, gate + width);
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const std::uint64_t p = first + k * kThreads;
      if (p >= packs) continue;
      float gate[N], up[N], out[N];
      unpack(gates[k], gate);
      unpack(ups[k], up);
#pragma unroll
      for (int i = 0; i < N; ++i)
        out[i] = swiglu(gate[i], up[i]);
      store_pack(y + p * N, make_pack<T>(out));
    }
  }
}

// dgate_up may be gate_up: a thread reads both of a pair before it writes them.
template <int N, typename T>
__global__ void __launch_bounds__(kThreads)
    swiglu_backward_kernel(const T* dy, const T* gate_up, std::uint64_t packs, std::uint64_t width,
                           T* dgate_up) {
  const std::uint64_t row_packs = width / N;
  const std::uint64_t step = std::uint64_t{gridDim.x} * (kThreads * kPacks);
  for (std::uint64_t first = std::uint64_t{blockIdx.x} * (kThreads * kPacks) + threadIdx.x;
       first < packs; first += step) {
    Pack<T, N> dys[kPacks], gates[kPacks], ups[kPacks];
    std::uint64_t places[kPacks];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const std::uint64_t p = first + k * kThreads;
      places[k] = p * N + p / row_packs * width;
      dys[k] = load_pack_if<N>(p < packs, dy + p * N);
      gates[k] = load_pack_if<N>(p < packs, gate_up + places[k]);
      ups[k] = load_pack_if<N>(p < packs, gate_up + places[k] + width);
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (first + k * kThreads >= packs) continue;
      float d[N], gate[N], up[N];
      unpack(dys[k], d);
      unpack(gates[k], gate);
      unpack(ups[k], up);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const SwigluGradient gradient = swiglu_gradient(d[i], gate[i], up[i]);
        gate[i] = gradient.gate;
        up[i] = gradient.up;
      }
      store_pack(dgate_up + places[k], make_pack<T>(gate));
      store_pack(dgate_up + places[k] + width, make_pack<T>(up));
    }
  }
}

template <int N, typename T>
void start(const T* gate_up, std::int64_t rows, std::int64_t width, T* y, cudaStream_t stream) {
  const std::int64_t packs = rows * (width / N);
  swiglu_kernel<N>
      <<<grid_for(packs, kThreads * kPacks), kThreads, 0, stream>>>(gate_up, packs, width, y);
}

template <int N, typename T>
void start_backward(const T* dy, const T* gate_up, std::int64_t rows, std::int64_t width,
                    T* dgate_up, cudaStream_t stream) {
  const std::int64_t packs = rows * (width / N);
  swiglu_backward_kernel<N><<<grid_for(packs, kThreads * kPacks), kThreads, 0, stream>>>(
      dy, gate_up, packs, width, dgate_up);
}

template <typename T>
void run(const void* gate_up, std::int64_t rows, std::int64_t width, void* y, cudaStream_t stream) {
  const bool wide = width % kWidePack<T> == 0 && aligned_to_16(gate_up, y);
  (wide ? start<kWidePack<T>, T> : start<1, T>)(static_cast<const T*>(gate_up), rows, width,
                                                static_cast<T*>(y), stream);
}

template <typename T>
void run_backward(const void* dy, const void* gate_up, std::int64_t rows, std::int64_t width,
                  void* dgate_up, cudaStream_t stream) {
  const bool wide = width % kWidePack<T> == 0 && aligned_to_16(dy, gate_up, dgate_up);
  (wide ? start_backward<kWidePack<T>, T>
        : start_backward<1, T>)(static_cast<const T*>(dy), static_cast<const T*>(gate_up), rows,
                                width, static_cast<T*>(dgate_up), stream);
}

}  // namespace

void launch_swiglu(ElementType type, const void* gate_up, std::int64_t rows, std::int64_t width,
                   void* y, cudaStream_t stream) {
  if (rows == 0 || width == 0) return;
  with_element(type,
               [&](auto element) { run<decltype(element)>(gate_up, rows, width, y, stream); });
  check_launch("swiglu");
}

void launch_swiglu_backward(ElementType type, const void* dy, const void* gate_up,
                            std::int64_t rows, std::int64_t width, void* dgate_up,
                            cudaStream_t stream) {
  if (rows == 0 || width == 0) return;
  with_element(type, [&](auto element) {
    run_backward<decltype(element)>(dy, gate_up, rows, width, dgate_up, stream);
  });
  check_launch("swiglu_backward");
}

}  // namespace antisd::inline ops
