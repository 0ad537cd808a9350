#include <type_traits>

#include "ops/kernels/attention_inputs.h"
#include "ops/kernels/launch.h"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/reduce.cuh"

namespace antisd::inline ops {
namespace {

constexpr int kThreads = 256;
constexpr int kHeads = 4;

// A head lies in the packs of Lanes neighbouring lanes; the lane Lanes / 2 further on holds the
// other half of each rotated pair.
template <int Lanes, int N>
struct HeadLanes {
  static constexpr int kHeadDim = Lanes * N, kHalf = kHeadDim / 2;
  static constexpr int kRows = kThreads / Lanes;  // heads a block works on at a time

  int lane = threadIdx.x % Lanes;
  int row = threadIdx.x / Lanes;
  bool second = lane >= Lanes / 2;

  __device__ int offset() const { return lane * N; }
  __device__ int angle() const { return (lane - (second ? Lanes / 2 : 0)) * N; }

  // (a, b) -> (a cos - b sin, b cos + a sin); direction -1 rotates back.
  __device__ void rotate(float (&x)[N], const float (&cosine)[N], const float (&sine)[N],
                         float direction) const {
    const float sign = second ? direction : -direction;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float other = __shfl_xor_sync(kAllLanes, x[i], Lanes / 2);
      x[i] = x[i] * cosine[i] + sign * other * sine[i];
    }
  }

  __device__ float inverse_rms(const float (&x)[N], float eps) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < N; ++i)
      sum += x[i] * x[i];
    return rsqrtf(lane_sum(sum, Lanes) / kHeadDim + eps);
  }
};

template <typename T>
struct ForwardArguments {
  AttentionInputShape shape;
  const T* qkv;
  const T *q_norm, *k_norm;
  float eps;
  const float *cosine, *sine;
  const std::int32_t* positions;
  T *q, *k, *v;
  const std::int64_t* rows;
};

// The heads that a group of lanes takes of one token, `groups` apart: it reads the token's angles
// once, and the loads of all heads are on their way together.
struct HeadRun {
  std::int64_t token;
  int group, groups;

  __device__ int head(int k) const { return group + k * groups; }
};

__device__ HeadRun head_run(std::int64_t index, int parts) {
  const int groups = (parts + kHeads - 1) / kHeads;
  const std::int64_t token = index / groups;
  return {token, static_cast<int>(index - token * groups), groups};
}

template <int Lanes, int N, typename T>
__global__ void __launch_bounds__(kThreads) forward_kernel(ForwardArguments<T> a) {
  using Head = HeadLanes<Lanes, N>;
  const Head lanes;
  const int parts = a.shape.heads + a.shape.kv_heads * (a.v == nullptr ? 1 : 2);
  const int width = (a.shape.heads + 2 * a.shape.kv_heads) * Head::kHeadDim;
  const std::int64_t kv_width = std::int64_t{a.shape.kv_heads} * Head::kHeadDim;
  const std::int64_t index = std::int64_t{blockIdx.x} * Head::kRows + lanes.row;
  HeadRun run = head_run(index, parts);
  const bool present = run.token < a.shape.tokens;
  if (!present) run.token = 0;  // all lanes go on together: the shuffles below need them
  Pack<T, N> packs[kHeads];
#pragma unroll
  for (int k = 0; k < kHeads; ++k) {
    packs[k] =
        load_pack_if<N>(present && run.head(k) < parts,
                        a.qkv + run.token * width + run.head(k) * Head::kHeadDim + lanes.offset());
  }
  float cosine[N], sine[N];
  const std::int64_t angle = std::int64_t{a.positions[run.token]} * Head::kHalf + lanes.angle();
  load_floats(a.cosine + angle, cosine);
  load_floats(a.sine + angle, sine);
  const std::int64_t row = a.rows != nullptr ? a.rows[run.token] : run.token;
#pragma unroll
  for (int k = 0; k < kHeads; ++k) {
    const int head = run.head(k), kv_head = head - a.shape.heads;
    float x[N];
    unpack(packs[k], x);
    const T* norm = kv_head < 0 ? a.q_norm : a.k_norm;
    if (norm != nullptr) {
      const float scale = lanes.inverse_rms(x, a.eps);
      float weight[N];
      unpack(load_pack<N>(norm + lanes.offset()), weight);
#pragma unroll
      for (int i = 0; i < N; ++i)
        x[i] *= scale * weight[i];
    }
    lanes.rotate(x, cosine, sine, 1);
    if (!present || head >= parts) continue;
    if (kv_head >= 0 && row < 0) continue;
    if (kv_head < 0) {
      store_pack(a.q + (run.token * a.shape.heads + head) * Head::kHeadDim + lanes.offset(),
                 make_pack<T>(x));
    } else if (kv_head < a.shape.kv_heads) {
      store_pack(a.k + row * kv_width + kv_head * Head::kHeadDim + lanes.offset(), make_pack<T>(x));
    } else {
      store_pack(
          a.v + row * kv_width + (kv_head - a.shape.kv_heads) * Head::kHeadDim + lanes.offset(),
          packs[k]);
    }
  }
}

template <typename T>
struct BackwardArguments {
  AttentionInputShape shape;
  int first_head, heads;  // of this launch: rotated heads
  int copied_heads;       // after those: values, whose gradient is copied
  HeadGradient dy, copied;
  const T* qkv;
  const T* norm;
  float eps;
  const float *cosine, *sine;
  const std::int32_t* positions;
  T* dqkv;
  float* partial;  // [gridDim.x, head_dim]
};

template <int Lanes, int N, typename T>
__global__ void __launch_bounds__(kThreads) backward_kernel(BackwardArguments<T> a) {
  using Head = HeadLanes<Lanes, N>;
  const Head lanes;
  const int parts = a.heads + a.copied_heads;
  const int width = (a.shape.heads + 2 * a.shape.kv_heads) * Head::kHeadDim;
  const std::int64_t work = a.shape.tokens * ((parts + kHeads - 1) / kHeads);
  float weight[N] = {}, dweight[N] = {};
  if (a.norm != nullptr) unpack(load_pack<N>(a.norm + lanes.offset()), weight);
  for (std::int64_t first = std::int64_t{blockIdx.x} * Head::kRows; first < work;
       first += std::int64_t{gridDim.x} * Head::kRows) {
    HeadRun run = head_run(first + lanes.row, parts);
    const bool present = run.token < a.shape.tokens;
    if (!present) run.token = 0;
    Pack<T, N> gradients[kHeads], inputs[kHeads];
#pragma unroll
    for (int k = 0; k < kHeads; ++k) {
      const int head = run.head(k);
      const bool copied = head >= a.heads, here = present && head < parts;
      const HeadGradient& source = copied ? a.copied : a.dy;
      gradients[k] = load_pack_if<N>(
          here, static_cast<const T*>(source.data) + run.token * source.token_stride +
                    (copied ? head - a.heads : head) * source.head_stride + lanes.offset());
      inputs[k] =
          load_pack_if<N>(here && a.norm != nullptr,
                          a.qkv + run.token * width +
                              std::int64_t{a.first_head + head} * Head::kHeadDim + lanes.offset());
    }
    float cosine[N], sine[N];
    const std::int64_t angle = std::int64_t{a.positions[run.token]} * Head::kHalf + lanes.angle();
    load_floats(a.cosine + angle, cosine);
    load_floats(a.sine + angle, sine);
#pragma unroll
    for (int k = 0; k < kHeads; ++k) {
      const int head = run.head(k);
      const bool copied = head >= a.heads, here = present && head < parts;
      float d[N];
      unpack(gradients[k], d);
      lanes.rotate(d, cosine, sine, -1);
      if (a.norm != nullptr) {
        // y = x r w with r = 1 / sqrt(mean(x^2) + eps): dx = r (w dy - x r^2 mean(w dy x)).
        float x[N], dot = 0;
        unpack(inputs[k], x);
        const float scale = lanes.inverse_rms(x, a.eps);
#pragma unroll
        for (int i = 0; i < N; ++i)
          dot += d[i] * weight[i] * x[i];
        dot = lane_sum(dot, Lanes) / Head::kHeadDim * scale * scale;
#pragma unroll
        for (int i = 0; i < N; ++i) {
          if (here && !copied) dweight[i] += d[i] * x[i] * scale;
          d[i] = scale * (weight[i] * d[i] - x[i] * dot);
        }
      }
      if (here) {
        store_pack(a.dqkv + run.token * width + std::int64_t{a.first_head + head} * Head::kHeadDim +
                       lanes.offset(),
                   copied ? gradients[k] : make_pack<T>(d));
      }
    }
  }
  if (a.norm == nullptr) return;
  __shared__ float sums[Head::kRows][Head::kHeadDim];
#pragma unroll
  for (int i = 0; i < N; ++i)
    sums[lanes.row][lanes.offset() + i] = dweight[i];
  __syncthreads();
  for (int i = threadIdx.x; i < Head::kHeadDim; i += kThreads) {
    float sum = 0;
    for (int row = 0; row < Head::kRows; ++row)
      sum += sums[row][i];
    a.partial[std::int64_t{blockIdx.x} * Head::kHeadDim + i] = sum;
  }
}

// A warp sums each column, in a fixed order.
__global__ void sum_partials_kernel(const float* partial, int blocks, int head_dim, float* sums) {
  float sum = 0;
  for (int block = threadIdx.x; block < blocks; block += kWarp)
    sum += partial[std::int64_t{block} * head_dim + blockIdx.x];
  sum = lane_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Calls launch(lanes as a constant) for heads of `head_dim` elements of T.
template <typename T, typename Launch>
void with_lanes(int head_dim, const Launch& launch) {
  switch (head_dim / kWidePack<T>) {
    case 8:
      return launch(std::integral_constant<int, 8>());
    case 16:
      return launch(std::integral_constant<int, 16>());
    default:
      return launch(std::integral_constant<int, 32>());
  }
}

template <typename T>
void run_forward(const ForwardArguments<T>& a, cudaStream_t stream) {
  const std::int64_t parts = a.shape.heads + a.shape.kv_heads * (a.v == nullptr ? 1 : 2);
  with_lanes<T>(a.shape.head_dim, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    forward_kernel<kLanes, kWidePack<T>>
        <<<grid_for(a.shape.tokens * ceil_div(parts, kHeads), kThreads / kLanes), kThreads, 0,
           stream>>>(a);
  });
}

template <typename T>
void run_backward(const BackwardArguments<T>& a, float* dweight, cudaStream_t stream) {
  with_lanes<T>(a.shape.head_dim, [&](auto lanes) {
    backward_kernel<decltype(lanes)::value, kWidePack<T>>
        <<<kAttentionInputsBlocks, kThreads, 0, stream>>>(a);
  });
  if (a.norm == nullptr) return;
  sum_partials_kernel<<<a.shape.head_dim, kWarp, 0, stream>>>(a.partial, kAttentionInputsBlocks,
                                                              a.shape.head_dim, dweight);
}

template <typename T>
const T* as(const void* pointer) {
  return static_cast<const T*>(pointer);
}

template <typename T>
void backward(const AttentionInputShape& shape, const HeadGradient& dq, const HeadGradient& dk,
              const HeadGradient& dv, const void* qkv, const void* q_norm, const void* k_norm,
              double eps, const float* cosine, const float* sine, const std::int32_t* positions,
              void* dqkv, float* dq_norm, float* dk_norm, float* workspace, cudaStream_t stream) {
  BackwardArguments<T> a = {shape,
                            0,
                            shape.heads,
                            0,
                            dq,
                            dv,
                            as<T>(qkv),
                            as<T>(q_norm),
                            static_cast<float>(eps),
                            cosine,
                            sine,
                            positions,
                            static_cast<T*>(dqkv),
                            workspace};
  run_backward(a, dq_norm, stream);
  a.first_head = shape.heads;
  a.heads = a.copied_heads = shape.kv_heads;
  a.dy = dk;
  a.norm = as<T>(k_norm);
  a.partial = workspace + std::int64_t{kAttentionInputsBlocks} * shape.head_dim;
  run_backward(a, dk_norm, stream);
}

}  // namespace

bool fused_attention_inputs_fit(ElementType type, int head_dim) {
  const int pack = type == ElementType::kFloat32 ? 4 : 8, lanes = head_dim / pack;
  return head_dim % pack == 0 && (lanes == 8 || lanes == 16 || lanes == 32);
}

void launch_attention_inputs(ElementType type, const AttentionInputShape& shape, const void* qkv,
                             const void* q_norm, const void* k_norm, double eps,
                             const float* cosine, const float* sine, const std::int32_t* positions,
                             void* q, void* k, void* v, const std::int64_t* rows,
                             cudaStream_t stream) {
  if (shape.tokens == 0) return;
  with_element(type, [&](auto element) {
    using T = decltype(element);
    run_forward(
        ForwardArguments<T>{shape, as<T>(qkv), as<T>(q_norm), as<T>(k_norm),
                            static_cast<float>(eps), cosine, sine, positions, static_cast<T*>(q),
                            static_cast<T*>(k), static_cast<T*>(v), rows},
        stream);
  });
  check_launch("attention_inputs");
}

void launch_attention_inputs_backward(ElementType type, const AttentionInputShape& shape,
                                      const HeadGradient& dq, const HeadGradient& dk,
                                      const HeadGradient& dv, const void* qkv, const void* q_norm,
                                      const void* k_norm, double eps, const float* cosine,
                                      const float* sine, const std::int32_t* positions, void* dqkv,
                                      float* dq_norm, float* dk_norm, float* workspace,
                                      cudaStream_t stream) {
  if (shape.tokens == 0) return;
  with_element(type, [&](auto element) {
    backward<decltype(element)>(shape, dq, dk, dv, qkv, q_norm, k_norm, eps, cosine, sine,
                                positions, dqkv, dq_norm, dk_norm, workspace, stream);
  });
  check_launch("attention_inputs_backward");
}

}  // namespace antisd::inline ops
