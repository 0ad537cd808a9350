#include "ops/kernels/decode_attention_plain.h"
#include "ops/kernels/launch.h"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/reduce.cuh"

namespace antisd::inline ops {
namespace {

constexpr int kDimsPerLane = 8;  // head_dim at most 256

template <typename T>
__device__ __forceinline__ float to_float(T x) {
  float value[1];
  unpack(Pack<T, 1>{x}, value);
  return value[0];
}
template <typename T>
__device__ __forceinline__ void store(T* p, float x) {
  const float value[1] = {x};
  store_pack(p, make_pack<T>(value));
}

template <typename T>
__global__ void __launch_bounds__(kWarp)
    plain_kernel(DecodeAttentionShape shape, const T* q, const T* keys, const T* values,
                 const std::int32_t* pages, const std::int32_t* lengths, float scale, T* out) {
  const int sequence = blockIdx.x, head = blockIdx.y, lane = threadIdx.x, d = shape.head_dim;
  const int length = lengths[sequence];
  if (length == 0) return;
  const std::int64_t place = (std::int64_t{sequence} * shape.heads + head) * d;
  const int kv_head = head / (shape.heads / shape.kv_heads);
  float query[kDimsPerLane] = {}, sums[kDimsPerLane] = {};
  for (int i = 0; i < kDimsPerLane; ++i) {
    if (lane + i * kWarp < d) query[i] = to_float(q[place + lane + i * kWarp]) * scale;
  }
  float maximum = -INFINITY, sum = 0;
  for (int key = shape.window > 0 ? max(0, length - shape.window) : 0; key < length; ++key) {
    const std::int64_t page =
        pages[std::int64_t{sequence} * shape.most_pages + key / shape.page_tokens];
    const std::int64_t row =
        ((page * shape.page_tokens + key % shape.page_tokens) * shape.kv_heads + kv_head) * d;
    float dot = 0;
    for (int i = 0; i < kDimsPerLane; ++i) {
      if (lane + i * kWarp < d) dot += query[i] * to_float(keys[row + lane + i * kWarp]);
    }
    const float score = lane_sum(dot), larger = fmaxf(maximum, score);
    const float shrink = expf(maximum - larger), weight = expf(score - larger);
    maximum = larger;
    sum = sum * shrink + weight;
    for (int i = 0; i < kDimsPerLane; ++i) {
      if (lane + i * kWarp < d)
        sums[i] = sums[i] * shrink + weight * to_float(values[row + lane + i * kWarp]);
    }
  }
  for (int i = 0; i < kDimsPerLane; ++i) {
    if (lane + i * kWarp < d) store(out + place + lane + i * kWarp, sums[i] / sum);
  }
}

template <typename T>
void run(const DecodeAttentionShape& shape, const void* q, const void* keys, const void* values,
         const std::int32_t* pages, const std::int32_t* lengths, double scale, void* out,
         cudaStream_t stream) {
  const dim3 grid(shape.sequences, shape.heads);
  plain_kernel<<<grid, kWarp, 0, stream>>>(
      shape, static_cast<const T*>(q), static_cast<const T*>(keys), static_cast<const T*>(values),
      pages, lengths, static_cast<float>(scale), static_cast<T*>(out));
}

}  // namespace

void launch_decode_attention_plain(ElementType type, const DecodeAttentionShape& shape,
                                   const void* q, const void* keys, const void* values,
                                   const std::int32_t* pages, const std::int32_t* lengths,
                                   double scale, void* out, cudaStream_t stream) {
  with_element(type, [&](auto element) {
    run<decltype(element)>(shape, q, keys, values, pages, lengths, scale, out, stream);
  });
  check_launch("decode_attention_plain");
}

}  // namespace antisd::inline ops
