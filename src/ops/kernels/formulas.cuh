// The arithmetic of the kernels for one element, or for one thread's part of a row. The host
// compiler can compile it too, so that tests compare it with double precision without a GPU.
#pragma once

#include <cmath>

#ifdef __CUDACC__
#define ANTISD_FORMULA __host__ __device__ __forceinline__
#else
#define ANTISD_FORMULA inline __attribute__((always_inline))
#endif

namespace antisd::inline ops {

// e^x, with a relative error below |x| * 2^-24 + 2^-22; 0 for -inf, NaN for NaN.
ANTISD_FORMULA float exp_of(float x) {
  return exp2f(x * 1.4426950408889634f);
}

// Within 2 ulp on the device; 0 where |b| is above 2^126.
ANTISD_FORMULA float quick_divide(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdividef(a, b);
#else
  return a / b;
#endif
}

// A product that the compiler may not fuse with a sum, so that equal factors give equal products
// everywhere.
ANTISD_FORMULA float rounded_product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

// ---- swiglu ----

ANTISD_FORMULA float swiglu(float gate, float up) {
  return quick_divide(gate, 1.0f + exp_of(-gate)) * up;
}

struct SwigluGradient {
  float gate, up;
};

ANTISD_FORMULA SwigluGradient swiglu_gradient(float dy, float gate, float up) {
  const float sigmoid = quick_divide(1.0f, 1.0f + exp_of(-gate));
  const float slope = sigmoid * (1.0f + gate * (1.0f - sigmoid));  // of silu
  return {dy * up * slope, dy * gate * sigmoid};
}

// ---- rope ----

struct RotatedPair {
  float a, b;
};

ANTISD_FORMULA RotatedPair rotate(float a, float b, float cosine, float sine) {
  return {a * cosine - b * sine, b * cosine + a * sine};
}

// ---- rms_norm ----

// d loss / d x for one element: gradient = dy * weight, mean = the row's mean of gradient * x *
// inverse_rms.
ANTISD_FORMULA float rms_norm_gradient(float gradient, float x, float inverse_rms, float mean) {
  return inverse_rms * (gradient - x * inverse_rms * mean);
}

// ---- scores of a token under a row of logits; z = logit / temperature ----

// Every use of a logit computes z this way. With the same rounding everywhere, a token with all the
// probability gets log-probability 0, never more.
ANTISD_FORMULA float scaled_logit(float logit, float inverse_temperature) {
  return rounded_product(logit, inverse_temperature);
}

// Sums over some z of a row. `shifted` is the sum of (z - m) e^(z - m): its terms stay small, so
// the entropy keeps its digits if z is large. The maximum ignores NaN, the sum does not.
struct LogitFold {
  float maximum;  // m; -inf if no z is above -inf
  float sum;      // of e^(z - m)
  float shifted;
};

ANTISD_FORMULA LogitFold empty_fold() {
  return {-INFINITY, 0.0f, 0.0f};
}

// What to subtract instead of m: -inf minus -inf would be NaN.
ANTISD_FORMULA float shift_of(float maximum) {
  return maximum == -INFINITY ? 0.0f : maximum;
}

// The same sums with m raised to `maximum`.
ANTISD_FORMULA LogitFold raised(const LogitFold& fold, float maximum) {
  const float delta = fold.maximum - shift_of(maximum);
  const float scale = exp_of(delta);
  // An empty fold has delta -inf, and -inf * 0 would be NaN.
  const float shifted = scale == 0.0f ? 0.0f : scale * (fold.shifted + delta * fold.sum);
  return {maximum, scale * fold.sum, shifted};
}

// Adds N logits (-inf adds nothing). Four partial sums each: short dependency chains, for speed and
// for rounding.
template <int N>
ANTISD_FORMULA void add_logits(LogitFold& fold, const float (&logits)[N],
                               float inverse_temperature) {
  float top = logits[0];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int i = 1; i < N; ++i)
    top = fmaxf(top, logits[i]);
  const LogitFold before =
      raised(fold, fmaxf(fold.maximum, scaled_logit(top, inverse_temperature)));
  const float shift = shift_of(before.maximum);
  float sum[4] = {}, shifted[4] = {};
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int i = 0; i < N; ++i) {
    const float delta = scaled_logit(logits[i], inverse_temperature) - shift;
    const float term = exp_of(delta);
    sum[i % 4] += term;
    shifted[i % 4] += term == 0.0f ? 0.0f : delta * term;
  }
  fold = {before.maximum, before.sum + ((sum[0] + sum[1]) + (sum[2] + sum[3])),
          before.shifted + ((shifted[0] + shifted[1]) + (shifted[2] + shifted[3]))};
}

// The first three of RowStatistics (token_scores.h).
struct LogitSums {
  float maximum, sum, weighted;
};

ANTISD_FORMULA LogitSums sums_of(const LogitFold& fold) {
  return {fold.maximum, fold.sum, fold.shifted};
}

ANTISD_FORMULA LogitSums merged(const LogitSums& a, const LogitSums& b) {
  const float maximum = fmaxf(a.maximum, b.maximum);
  const float scale_a = exp_of(a.maximum - shift_of(maximum));
  const float scale_b = exp_of(b.maximum - shift_of(maximum));
  // Rebases differences from the old maximum to the new one; a part that vanished adds nothing.
  const float weighted_a =
      scale_a == 0.0f ? 0.0f : scale_a * (a.weighted + (a.maximum - maximum) * a.sum);
  const float weighted_b =
      scale_b == 0.0f ? 0.0f : scale_b * (b.weighted + (b.maximum - maximum) * b.sum);
  return {maximum, scale_a * a.sum + scale_b * b.sum, weighted_a + weighted_b};
}

ANTISD_FORMULA float log_sum_exp(const LogitSums& sums) {
  return sums.maximum + logf(sums.sum);
}

// target - lse; subtracting m first keeps the digits that lse would lose.
ANTISD_FORMULA float log_probability(const LogitSums& sums, float target) {
  return (target - sums.maximum) - logf(sums.sum);
}

// lse - E[z], at least 0, with m subtracted from both.
ANTISD_FORMULA float entropy_of(const LogitSums& sums) {
  const float entropy = logf(sums.sum) - sums.weighted / sums.sum;
  return entropy < 0.0f ? 0.0f : entropy;
}

// A row's inputs to the gradient besides its logits.
struct GradientRow {
  float lse, entropy, dlogp, dentropy;
};

// d loss / d logit: (dlogp (1_target - p) - dentropy p (log p + H)) / temperature.
ANTISD_FORMULA float logit_gradient(float logit, bool is_target, const GradientRow& row,
                                    float inverse_temperature) {
  const float logp = scaled_logit(logit, inverse_temperature) - row.lse;
  const float p = exp_of(logp);
  const float spread = p == 0.0f ? 0.0f : p * (logp + row.entropy);
  const float target = is_target ? 1.0f : 0.0f;
  return (row.dlogp * (target - p) - row.dentropy * spread) * inverse_temperature;
}

// ---- AdamW ----

// The factors of a step, the same for every weight.
struct AdamWFactors {
  float gradient_scale;           // of clipping
  float first_rate;               // 1 - beta1
  float second_decay;             // beta2
  float second_rate;              // 1 - beta2
  float inverse_root_correction;  // 1 / sqrt(1 - beta2^t)
  float eps;
  float step_size;     // lr / (1 - beta1^t)
  float weight_decay;  // lr times the decay
};

struct AdamWElement {
  float weight, first, second;
};

// Decay and step are added before the weight is changed: one rounding, not two, of a change that is
// often near the weight's last bit.
ANTISD_FORMULA AdamWElement adamw_element(float gradient, const AdamWElement& before,
                                          const AdamWFactors& f) {
  const float g = gradient * f.gradient_scale;
  const float first = before.first + f.first_rate * (g - before.first);
  const float second = f.second_decay * before.second + f.second_rate * g * g;
  const float denominator = sqrtf(second) * f.inverse_root_correction + f.eps;
  const float change = f.weight_decay * before.weight + f.step_size * first / denominator;
  return {before.weight - change, first, second};
}

}  // namespace antisd::inline ops
