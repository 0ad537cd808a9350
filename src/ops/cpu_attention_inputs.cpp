#include "ops/cpu_attention_inputs.h"

#include "ops/simd.h"

namespace antisd::inline ops {
namespace {

constexpr std::int64_t kTokensPerTask = 32;
constexpr std::int64_t kTokensPerSum = 128;

ANTISD_SIMD_CLONES float inverse_rms_of(const float* x, std::int64_t width, float eps) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < width; ++i)
    squares += x[i] * x[i];
  return 1.0f / std::sqrt(squares / static_cast<float>(width) + eps);
}

// y = rotation of (x inverse weight).
ANTISD_SIMD_CLONES void norm_and_rotate(const float* x, const float* weight, float inverse,
                                        const float* cosine, const float* sine, std::int64_t half,
                                        float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = x[i] * inverse * weight[i], b = x[half + i] * inverse * weight[half + i];
    y[i] = a * cosine[i] - b * sine[i];
    y[half + i] = b * cosine[i] + a * sine[i];
  }
}

ANTISD_SIMD_CLONES void rotate_back(const float* dy, const float* cosine, const float* sine,
                                    std::int64_t half, float* dx) {
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = dy[i], b = dy[half + i];
    dx[i] = a * cosine[i] + b * sine[i];
    dx[half + i] = b * cosine[i] - a * sine[i];
  }
}

// dx holds the gradient of the normed values and becomes that of x: with n = x r, r = inverse rms,
// dx = r (dy w - n mean(dy w n)), dw += dy n.
ANTISD_SIMD_CLONES void norm_back(const float* x, const float* weight, float inverse,
                                  std::int64_t width, float* dx, float* dweight) {
  float product = 0;
#pragma omp simd reduction(+ : product)
  for (std::int64_t i = 0; i < width; ++i)
    product += dx[i] * weight[i] * x[i];
  const float mean = product * inverse * inverse / static_cast<float>(width);
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) {
    dweight[i] += dx[i] * x[i] * inverse;
    dx[i] = inverse * (dx[i] * weight[i] - x[i] * mean);
  }
}

// Queries (0) or keys (1) within a row of qkv: `groups` runs of `width` values, each normed by
// itself.
struct Part {
  std::int64_t first, heads, groups, width;

  Part(const CpuAttentionInputs& in, int index)
      : first(index == 0 ? 0 : in.shape.heads * in.shape.head_dim),
        heads(index == 0 ? in.shape.heads : in.shape.kv_heads),
        groups(in.norm == QkNorm::kProjection ? 1 : heads),
        width(heads / groups * in.shape.head_dim) {}
};

std::int64_t row_width(const AttentionShape& s) {
  return (s.heads + 2 * s.kv_heads) * s.head_dim;
}

}  // namespace

std::array<at::Tensor, 2> cpu_attention_inputs(const CpuAttentionInputs& in, const at::Tensor& qkv,
                                               const std::array<at::Tensor, 3>& parts) {
  const std::int64_t tokens = qkv.size(0), dim = in.shape.head_dim, half = dim / 2;
  const std::int64_t all = row_width(in.shape), v_width = in.shape.kv_heads * dim;
  const bool normed = in.norm != QkNorm::kNone;
  const std::vector<float> ones(dim, 1.0f);
  std::array<at::Tensor, 2> inverse_rms;
  for (int index = 0; index < 2 && normed; ++index)
    inverse_rms[index] = at::empty({tokens * Part(in, index).groups}, qkv.options());
  at::parallel_for(0, tokens, kTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      const float* row = qkv.const_data_ptr<float>() + token * all;
      const std::int64_t angle = in.positions.const_data_ptr<std::int32_t>()[token] * half;
      const float* cosine = in.cosine.const_data_ptr<float>() + angle;
      const float* sine = in.sine.const_data_ptr<float>() + angle;
      for (int index = 0; index < 2; ++index) {
        const Part part(in, index);
        float* out = parts[index].data_ptr<float>() + token * part.heads * dim;
        for (std::int64_t group = 0; group < part.groups; ++group) {
          const float* x = row + part.first + group * part.width;
          float inverse = 1;
          if (normed) {
            inverse = inverse_rms_of(x, part.width, static_cast<float>(in.eps));
            inverse_rms[index].data_ptr<float>()[token * part.groups + group] = inverse;
          }
          for (std::int64_t at = 0; at < part.width; at += dim) {
            const float* weight =
                normed ? in.weights[index].const_data_ptr<float>() + at : ones.data();
            norm_and_rotate(x + at, weight, inverse, cosine, sine, half,
                            out + group * part.width + at);
          }
        }
      }
      std::copy_n(row + all - v_width, v_width, parts[2].data_ptr<float>() + token * v_width);
    }
  });
  return inverse_rms;
}

std::array<at::Tensor, 2> cpu_attention_inputs_backward(
    const CpuAttentionInputs& in, const std::array<at::Tensor, 3>& gradients, const at::Tensor& qkv,
    const std::array<at::Tensor, 2>& inverse_rms, const at::Tensor& dqkv) {
  const std::int64_t tokens = dqkv.size(0), dim = in.shape.head_dim, half = dim / 2;
  const std::int64_t all = row_width(in.shape), v_width = in.shape.kv_heads * dim;
  const std::int64_t runs = (tokens + kTokensPerSum - 1) / kTokensPerSum;
  const bool normed = in.norm != QkNorm::kNone;
  std::array<at::Tensor, 2> sums;
  for (int index = 0; index < 2 && normed; ++index)
    sums[index] = at::zeros({std::max<std::int64_t>(runs, 1), Part(in, index).width}, at::kFloat);
  at::parallel_for(0, runs, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin * kTokensPerSum; token < std::min(tokens, end * kTokensPerSum);
         ++token) {
      float* target = dqkv.data_ptr<float>() + token * all;
      const std::int64_t angle = in.positions.const_data_ptr<std::int32_t>()[token] * half;
      for (int index = 0; index < 2; ++index) {
        const Part part(in, index);
        const float* dy = gradients[index].const_data_ptr<float>() + token * part.heads * dim;
        for (std::int64_t at = 0; at < part.heads * dim; at += dim) {
          rotate_back(dy + at, in.cosine.const_data_ptr<float>() + angle,
                      in.sine.const_data_ptr<float>() + angle, half, target + part.first + at);
        }
        for (std::int64_t group = 0; group < part.groups && normed; ++group) {
          const std::int64_t at = part.first + group * part.width;
          norm_back(qkv.const_data_ptr<float>() + token * all + at,
                    in.weights[index].const_data_ptr<float>(),
                    inverse_rms[index].const_data_ptr<float>()[token * part.groups + group],
                    part.width, target + at,
                    sums[index].data_ptr<float>() + token / kTokensPerSum * part.width);
        }
      }
      std::copy_n(gradients[2].const_data_ptr<float>() + token * v_width, v_width,
                  target + all - v_width);
    }
  });
  if (normed) return {sums[0].sum(0), sums[1].sum(0)};
  return {};
}

}  // namespace antisd::inline ops
