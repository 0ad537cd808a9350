#include "ops/cpu_sampling.h"

#include <limits>

#include "ops/simd.h"

namespace antisd::inline ops {
namespace {

constexpr std::int64_t kSumBlock = 256;

ANTISD_SIMD_CLONES float row_maximum(const float* z, std::int64_t n) {
  float maximum = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : maximum)
  for (std::int64_t i = 0; i < n; ++i)
    maximum = z[i] > maximum ? z[i] : maximum;
  return maximum;
}

// Sets weights = e^((z - maximum) scale); returns their sum.
ANTISD_SIMD_CLONES float weigh_block(const float* z, std::int64_t n, float maximum, float scale,
                                     float* weights) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    weights[i] = simd_exp((z[i] - maximum) * scale);
    sum += weights[i];
  }
  return sum;
}

ANTISD_SIMD_CLONES float sum_block(const float* weights, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i)
    sum += weights[i];
  return sum;
}

struct Weights {
  std::vector<float> values;     // by id
  std::vector<float> block_sum;  // of kSumBlock values each
  double total = 0;

  void fill(const float* z, std::int64_t n, float maximum, float scale) {
    values.resize(n);
    block_sum.clear();
    for (std::int64_t i = 0; i < n; i += kSumBlock)
      block_sum.push_back(
          weigh_block(z + i, std::min(kSumBlock, n - i), maximum, scale, values.data() + i));
    add_up();
  }
  void sum_again() {
    const auto n = static_cast<std::int64_t>(values.size());
    for (std::size_t b = 0; b < block_sum.size(); ++b) {
      const std::int64_t at = static_cast<std::int64_t>(b) * kSumBlock;
      block_sum[b] = sum_block(values.data() + at, std::min(kSumBlock, n - at));
    }
    add_up();
  }
  // The smallest id whose cumulative weight exceeds noise * total.
  std::int32_t draw(double noise) const {
    const double target = noise * total;
    double before = 0;
    std::size_t block = 0;
    for (; block + 1 < block_sum.size() && before + block_sum[block] <= target; ++block)
      before += block_sum[block];
    // A block's sum and the sum over its values round differently: a target between the two gives
    // the block's last possible token.
    const std::size_t at = block * kSumBlock, end = std::min(at + kSumBlock, values.size());
    std::int32_t last = -1;
    for (std::size_t i = at; i < end; ++i) {
      if (!(values[i] > 0)) continue;
      last = static_cast<std::int32_t>(i);
      before += values[i];
      if (before > target) return last;
    }
    if (last >= 0) return last;
    for (std::size_t i = at; i-- > 0;)
      if (values[i] > 0) return static_cast<std::int32_t>(i);
    return 0;
  }

 private:
  void add_up() {
    total = 0;
    for (const float sum : block_sum)
      total += sum;
  }
};

// Keeps the most likely tokens of a row: all other weights become 0.
class Filter {
  auto likelier() const {
    return [z = z_](std::int32_t a, std::int32_t b) { return z[a] != z[b] ? z[a] > z[b] : a < b; };
  }

 public:
  Filter(const float* z, Weights& weights) : z_(z), weights_(weights) {
    ids_.resize(weights.values.size());
    for (std::size_t i = 0; i < ids_.size(); ++i)
      ids_[i] = static_cast<std::int32_t>(i);
  }

  void top_k(std::int64_t k) {
    if (k >= static_cast<std::int64_t>(ids_.size())) return;
    std::nth_element(ids_.begin(), ids_.begin() + k, ids_.end(), likelier());
    ids_.resize(k);
  }

  void top_p(double p) {
    double total = 0;
    for (const std::int32_t id : ids_)
      total += weights_.values[id];
    // Sorted in growing runs: usually few tokens hold the mass.
    double mass = 0;
    std::size_t sorted = 0, run = 64;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (i == sorted) {
        const std::size_t end = std::min(ids_.size(), sorted + run);
        std::partial_sort(ids_.begin() + sorted, ids_.begin() + end, ids_.end(), likelier());
        sorted = end;
        run *= 8;
      }
      mass += weights_.values[ids_[i]];
      if (mass >= p * total) {
        ids_.resize(i + 1);
        return;
      }
    }
  }

  // The most likely token's weight is 1.
  void min_p(double p) {
    std::erase_if(ids_, [&](std::int32_t id) { return weights_.values[id] < p; });
  }

  void apply() {
    std::vector<float> kept(ids_.size());
    for (std::size_t i = 0; i < ids_.size(); ++i)
      kept[i] = weights_.values[ids_[i]];
    std::fill(weights_.values.begin(), weights_.values.end(), 0.0f);
    for (std::size_t i = 0; i < ids_.size(); ++i)
      weights_.values[ids_[i]] = kept[i];
    weights_.sum_again();
  }

 private:
  const float* z_;
  Weights& weights_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

SampledToken cpu_sample_row(const float* logits, std::int64_t vocabulary,
                            const SamplingSettings& settings, double noise) {
  thread_local Weights weights;
  const float maximum = row_maximum(logits, vocabulary);
  weights.fill(logits, vocabulary, maximum, 1);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (!std::isfinite(weights.total) || !std::isfinite(maximum)) return {0, kNan, kNan};
  const double log_total = std::log(weights.total);
  const auto raw_logp = [&](std::int32_t id) {
    return static_cast<float>(static_cast<double>(logits[id]) - maximum - log_total);
  };
  if (settings.temperature == 0) {
    const auto id =
        static_cast<std::int32_t>(std::find(logits, logits + vocabulary, maximum) - logits);
    return {id, 0.0f, raw_logp(id)};
  }
  if (settings.temperature != 1)
    weights.fill(logits, vocabulary, maximum, static_cast<float>(1 / settings.temperature));
  if (settings.filters()) {
    Filter filter(logits, weights);
    if (settings.top_k > 0) filter.top_k(settings.top_k);
    if (settings.top_p < 1) filter.top_p(settings.top_p);
    if (settings.min_p > 0) filter.min_p(settings.min_p);
    filter.apply();
  }
  const std::int32_t id = weights.draw(noise);
  const double logp =
      (static_cast<double>(logits[id]) - maximum) / settings.temperature - std::log(weights.total);
  return {id, static_cast<float>(logp), raw_logp(id)};
}

}  // namespace antisd::inline ops
