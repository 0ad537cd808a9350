#include "ops/kernels/formulas.cuh"
#include "ops/kernels/launch.h"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/rope.h"

namespace antisd::inline ops {
namespace {

constexpr int kThreads = 256;
constexpr int kHeads = 4;  // per thread, which reads their cosines and sines once

struct RopeArguments {
  std::int64_t token_stride;
  const float* cosine;
  const float* sine;
  const std::int32_t* positions;
  std::uint64_t tokens;
  unsigned heads, head_dim;
  float direction;
};

// A thread rotates one pack of pairs in up to kHeads heads of one token. Consecutive threads take
// consecutive packs, then consecutive heads, then the next token; the heads of one thread are
// head_groups apart.
template <int N, typename T>
__global__ void __launch_bounds__(kThreads, 3) rope_kernel(T* x, RopeArguments a) {
  const unsigned half = a.head_dim / 2, row_packs = half / N;
  const unsigned head_groups = (a.heads + kHeads - 1) / kHeads;
  const std::uint64_t work = a.tokens * head_groups * row_packs;
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t w = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; w < work; w += step) {
    const std::uint64_t row = w / row_packs, token = row / head_groups;
    const unsigned offset = static_cast<unsigned>(w - row * row_packs) * N;
    const unsigned group = static_cast<unsigned>(row - token * head_groups);
    T* pair = x + static_cast<std::int64_t>(token) * a.token_stride + offset;
    Pack<T, N> firsts[kHeads], seconds[kHeads];
#pragma unroll
    for (int k = 0; k < kHeads; ++k) {
      const unsigned head = group + k * head_groups;
      const T* source = pair + std::uint64_t{head} * a.head_dim;
      firsts[k] = load_pack_if<N>(head < a.heads, source);
      seconds[k] = load_pack_if<N>(head < a.heads, source + half);
    }
    const std::int64_t angle = std::int64_t{a.positions[token]} * half + offset;
    float cosine[N], sine[N];
    load_floats(a.cosine + angle, cosine);
    load_floats(a.sine + angle, sine);
#pragma unroll
    for (int i = 0; i < N; ++i)
      sine[i] *= a.direction;
#pragma unroll
    for (int k = 0; k < kHeads; ++k) {
      const unsigned head = group + k * head_groups;
      if (head >= a.heads) continue;
      float first[N], second[N];
      unpack(firsts[k], first);
      unpack(seconds[k], second);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const RotatedPair rotated = rotate(first[i], second[i], cosine[i], sine[i]);
        first[i] = rotated.a;
        second[i] = rotated.b;
      }
      T* target = pair + std::uint64_t{head} * a.head_dim;
      store_pack(target, make_pack<T>(first));
      store_pack(target + half, make_pack<T>(second));
    }
  }
}

template <int N, typename T>
void start(T* x, const RopeArguments& a, cudaStream_t stream) {
  const std::int64_t head_groups = ceil_div(a.heads, kHeads);
  const std::int64_t work = a.tokens * head_groups * (a.head_dim / 2 / N);
  rope_kernel<N><<<grid_for(work, kThreads), kThreads, 0, stream>>>(x, a);
}

template <typename T>
void run(void* x, const RopeArguments& a, cudaStream_t stream) {
  const bool wide = a.head_dim / 2 % kWidePack<T> == 0 && a.token_stride % kWidePack<T> == 0 &&
                    a.head_dim % 2 == 0 && aligned_to_16(x, a.cosine, a.sine);
  (wide ? start<kWidePack<T>, T> : start<1, T>)(static_cast<T*>(x), a, stream);
}

}  // namespace

void launch_rope(ElementType type, void* x, std::int64_t token_stride, const float* cosine,
                 const float* sine, const std::int32_t* positions, std::int64_t tokens, int heads,
                 int head_dim, int direction, cudaStream_t stream) {
  if (tokens == 0 || heads == 0 || head_dim < 2) return;
  const RopeArguments arguments = {token_stride,
                                   cosine,
                                   sine,
                                   positions,
                                   static_cast<std::uint64_t>(tokens),
                                   static_cast<unsigned>(heads),
                                   static_cast<unsigned>(head_dim),
                                   static_cast<float>(direction)};
  with_element(type, [&](auto element) { run<decltype(element)>(x, arguments, stream); });
  check_launch("rope");
}

}  // namespace antisd::inline ops
