// Elements in packs of 16 bytes, the widest access of a thread, or one by one if the layout does
// not allow that. Arithmetic is in fp32 for all element types.
//
//   const Pack<T, N> pack = load_pack<N>(x + i);
//   float values[N];
//   unpack(pack, values);
//   ...
//   store_pack(y + i, make_pack<T>(values));
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

// Calls launch(T()) with the element's type T.
template <typename Launch>
auto with_element(ElementType type, const Launch& launch) {
  if (type == ElementType::kBFloat16) return launch(__nv_bfloat16());
  if (type == ElementType::kFloat16) return launch(__half());
  return launch(float());
}

template <typename T>
inline constexpr int kWidePack = 16 / sizeof(T);

template <typename T, int N>
struct Pack {
  static_assert(N == kWidePack<T>);
  uint4 bits;
};

template <typename T>
struct Pack<T, 1> {
  T bits;
};

template <int N, typename T>
__device__ __forceinline__ Pack<T, N> load_pack(const T* p) {
  return {*reinterpret_cast<const decltype(Pack<T, N>::bits)*>(p)};
}

// Zeros if `present` is false; p is then not read.
template <int N, typename T>
__device__ __forceinline__ Pack<T, N> load_pack_if(bool present, const T* p) {
  Pack<T, N> pack = {};
  if (present) pack = load_pack<N>(p);
  return pack;
}

template <typename T, int N>
__device__ __forceinline__ void store_pack(T* p, const Pack<T, N>& pack) {
  if constexpr (N == 1) {
    *p = pack.bits;
  } else {
    // For a plain assignment the compiler sometimes emits four stores.
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)),
                 "r"(pack.bits.x), "r"(pack.bits.y), "r"(pack.bits.z), "r"(pack.bits.w)
                 : "memory");
  }
}

__device__ __forceinline__ void unpack(const Pack<float, 1>& pack, float (&values)[1]) {
  values[0] = pack.bits;
}

__device__ __forceinline__ void unpack(const Pack<__nv_bfloat16, 1>& pack, float (&values)[1]) {
  values[0] = __bfloat162float(pack.bits);
}

__device__ __forceinline__ void unpack(const Pack<__half, 1>& pack, float (&values)[1]) {
  values[0] = __half2float(pack.bits);
}

__device__ __forceinline__ void unpack(const Pack<float, 4>& pack, float (&values)[4]) {
  values[0] = __uint_as_float(pack.bits.x);
  values[1] = __uint_as_float(pack.bits.y);
  values[2] = __uint_as_float(pack.bits.z);
  values[3] = __uint_as_float(pack.bits.w);
}

// A bf16 is the upper half of an fp32; the element at the lower address is the word's lower half.
__device__ __forceinline__ void unpack(const Pack<__nv_bfloat16, 8>& pack, float (&values)[8]) {
  const unsigned words[4] = {pack.bits.x, pack.bits.y, pack.bits.z, pack.bits.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(words[i] << 16);
    values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

__device__ __forceinline__ void unpack(const Pack<__half, 8>& pack, float (&values)[8]) {
  const unsigned words[4] = {pack.bits.x, pack.bits.y, pack.bits.z, pack.bits.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __half2_raw pair = {static_cast<unsigned short>(words[i] & 0xffffu),
                              static_cast<unsigned short>(words[i] >> 16)};
    const float2 two = __half22float2(pair);
    values[2 * i] = two.x;
    values[2 * i + 1] = two.y;
  }
}

__device__ __forceinline__ void round_into(const float (&values)[1], Pack<float, 1>& pack) {
  pack.bits = values[0];
}

__device__ __forceinline__ void round_into(const float (&values)[1], Pack<__nv_bfloat16, 1>& pack) {
  pack.bits = __float2bfloat16_rn(values[0]);
}

__device__ __forceinline__ void round_into(const float (&values)[1], Pack<__half, 1>& pack) {
  pack.bits = __float2half_rn(values[0]);
}

__device__ __forceinline__ void round_into(const float (&values)[4], Pack<float, 4>& pack) {
  pack.bits = make_uint4(__float_as_uint(values[0]), __float_as_uint(values[1]),
                         __float_as_uint(values[2]), __float_as_uint(values[3]));
}

// Two 16-bit elements as in memory, the first in the lower half.
template <typename T>
__device__ __forceinline__ unsigned round_two(float low, float high);

template <>
__device__ __forceinline__ unsigned round_two<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162_raw pair = __floats2bfloat162_rn(low, high);
  return unsigned{pair.y} << 16 | pair.x;
}

template <>
__device__ __forceinline__ unsigned round_two<__half>(float low, float high) {
  const __half2_raw pair = __floats2half2_rn(low, high);
  return unsigned{pair.y} << 16 | pair.x;
}

template <typename T>
__device__ __forceinline__ void round_into(const float (&values)[8], Pack<T, 8>& pack) {
  pack.bits = make_uint4(round_two<T>(values[0], values[1]), round_two<T>(values[2], values[3]),
                         round_two<T>(values[4], values[5]), round_two<T>(values[6], values[7]));
}

template <typename T, int N>
__device__ __forceinline__ Pack<T, N> make_pack(const float (&values)[N]) {
  Pack<T, N> pack;
  round_into(values, pack);
  return pack;
}

// N floats beside a pack of N elements: two packs if the element has 16 bits.
template <int N>
__device__ __forceinline__ void load_floats(const float* p, float (&values)[N]) {
  constexpr int kStep = N < 4 ? 1 : 4;
#pragma unroll
  for (int i = 0; i < N; i += kStep) {
    float part[kStep];
    unpack(load_pack<kStep>(p + i), part);
#pragma unroll
    for (int j = 0; j < kStep; ++j)
      values[i + j] = part[j];
  }
}

}  // namespace antisd::inline ops
