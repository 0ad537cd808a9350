#include "eval/results/interval.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/check.h"

namespace antisd::inline eval {
namespace {

constexpr double kNormalQuantile = 1.959963984540054;
constexpr double kHalfPi = std::numbers::pi / 2;

struct Spread {
  double mean = 0;
  double variance = 0;  // of the mean
};

Spread spread_of(std::span<const double> values) {
  const double count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values)
    sum += value;
  const double mean = sum / count;
  for (const double value : values)
    squares += (value - mean) * (value - mean);
  return {mean, squares / (count - 1) / count};
}

// Wilson's: all p for which `mean` is within t standard errors of p.
Interval wilson(double mean, double effective, double t) {
  const double square = t * t / effective;
  const double centre = (mean + square / 2) / (1 + square);
  const double half = std::sqrt(square * mean * (1 - mean) + square * square / 4) / (1 + square);
  return {mean <= 0 ? 0 : std::max(0.0, centre - half),
          mean >= 1 ? 1 : std::min(1.0, centre + half)};
}

// How many problems have a count above j, for every j.
class Exceedance {
 public:
  explicit Exceedance(std::int64_t most) : above_(static_cast<std::size_t>(most), 0) {}
  void add(std::int64_t count) {
    for (std::int64_t j = 0; j < count; ++j)
      ++above_[static_cast<std::size_t>(j)];
  }
  // Sum over problems of log(start (start + 1) ... (start + count - 1)).
  double log_rising(double start) const {
    double sum = 0, product = 1;
    std::size_t j = 0;
    while (j < above_.size() && above_[j] > 0) {
      const double weight = above_[j];
      for (; j < above_.size() && above_[j] == weight; ++j) {
        product *= start + static_cast<double>(j);
        if (product > 1e-200 && product < 1e200) continue;
        sum += weight * std::log(product);
        product = 1;
      }
      sum += weight * std::log(product);
      product = 1;
    }
    return sum;
  }

 private:
  std::vector<double> above_;
};

// Each problem's accuracy is drawn from a beta distribution with mean mu = sin^2(angle) and
// correlation rho between a problem's samples; the result is quantiles of the posterior of mu. The
// prior is flat in both angles (Jeffreys' for mu where rho is 0 or 1). If the truth is near 0, the
// upper end rarely misses it, so the lower end may use most of the 5 %; likewise near 1.
Interval beta_binomial_interval(std::span<const ProblemCount> problems, double mean) {
  constexpr int kAngles = 80, kCorrelations = 12;
  // Found by simulation; the far end has the usual quantile once kFewProblems are right.
  const double few = std::min(mean, 1 - mean) * static_cast<double>(problems.size()) / kFewProblems;
  const double near_tail = 0.04, far_tail = 0.015 + 0.01 * few * few;
  std::int64_t most = 0;
  for (const ProblemCount& problem : problems)
    most = std::max(most, problem.graded);
  Exceedance right(most), wrong(most), graded(most);
  for (const ProblemCount& problem : problems) {
    right.add(problem.right);
    wrong.add(problem.graded - problem.right);
    graded.add(problem.graded);
  }
  // Six standard errors of the worst case (a problem's samples all equal) cover the whole
  // posterior.
  const double centre = std::asin(std::sqrt(mean));
  const double reach = 3 / std::sqrt(static_cast<double>(problems.size()));
  const double first = std::max(0.0, centre - reach), last = std::min(kHalfPi, centre + reach);
  const auto angle_at = [&](double i) { return first + (last - first) * i / kAngles; };
  std::vector<double> logs;
  for (int i = 0; i < kAngles; ++i) {
    const double mu = std::pow(std::sin(angle_at(i + 0.5)), 2);
    for (int r = 0; r < kCorrelations; ++r) {
      const double rho = std::pow(std::sin((r + 0.5) / kCorrelations * kHalfPi), 2);
      const double total = 1 / rho - 1;
      logs.push_back(right.log_rising(mu * total) + wrong.log_rising((1 - mu) * total) -
                     graded.log_rising(total));
    }
  }
  const double highest = *std::max_element(logs.begin(), logs.end());
  std::vector<double> below = {0};  // posterior mass below angle_at(i)
  for (int i = 0; i < kAngles; ++i) {
    double mass = 0;
    for (int r = 0; r < kCorrelations; ++r)
      mass += std::exp(logs[static_cast<std::size_t>(i * kCorrelations + r)] - highest);
    below.push_back(below.back() + mass);
  }
  const auto quantile = [&](double share) {
    const double wanted = share * below.back();
    const auto next = std::upper_bound(below.begin() + 1, below.end() - 1, wanted);
    const double before = *(next - 1);
    const double part = *next > before ? (wanted - before) / (*next - before) : 0;
    return std::pow(std::sin(angle_at(static_cast<double>(next - 1 - below.begin()) + part)), 2);
  };
  const bool near_zero = mean < 0.5;
  const double low = quantile(near_zero ? near_tail : far_tail);
  const double high = quantile(1 - (near_zero ? far_tail : near_tail));
  return {mean <= 0 ? 0 : std::min(low, mean), mean >= 1 ? 1 : std::max(high, mean)};
}

// The integral of cos(x)^power from 0 to `angle` < pi / 2, by Simpson's rule. With t = sqrt(d)
// tan(x) this is Student's distribution with power + 1 degrees of freedom, up to a factor.
double power_of_cosine_integral(double angle, double power) {
  constexpr int kPieces = 128;
  double sum = 0;
  for (int i = 0; i <= kPieces; ++i) {
    const double weight = i == 0 || i == kPieces ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * std::pow(std::cos(angle * i / kPieces), power);
  }
  return sum * angle / (3 * kPieces);
}

// Wilson's interval with the effective number of problems from their variance, and Student's
// quantile with as many degrees of freedom as that variance was estimated with.
Interval interval_by_spread(std::span<const double> values) {
  if (values.empty()) return {};
  if (values.size() == 1) return {0, 1};
  const auto [mean, variance] = spread_of(values);
  const double count = static_cast<double>(values.size());
  // Equal values say nothing about the variance; assume that of `count` values 0 or 1.
  if (variance == 0 || mean <= 0 || mean >= 1) return wilson(mean, count, kNormalQuantile);
  // The variance as a share of its maximum for this mean (all values 0 or 1). At the maximum the
  // mean determines it; the smaller the share, the more of it was estimated.
  const double share = std::min(1.0, variance * (count - 1) / (mean * (1 - mean)));
  return wilson(mean, mean * (1 - mean) / variance, student_quantile((count - 1) / (1 - share)));
}

}  // namespace

double student_quantile(double degrees) {
  ANTISD_CHECK_LE(1.0, degrees);
  // The Cornish-Fisher expansion: accurate to 1e-8 from 200 degrees of freedom on, too small below.
  const double z = kNormalQuantile, z2 = z * z, d = degrees;
  double t = z + z * (z2 + 1) / (4 * d) + z * (5 * z2 * z2 + 16 * z2 + 3) / (96 * d * d) +
             z * (3 * z2 * z2 * z2 + 19 * z2 * z2 + 17 * z2 - 15) / (384 * d * d * d);
  if (degrees > 200) return t;
  // Newton's method on a concave function from below never passes the root.
  const double scale =
      2 / std::sqrt(std::numbers::pi) * std::exp(std::lgamma((d + 1) / 2) - std::lgamma(d / 2));
  for (int i = 0; i < 100; ++i) {
    const double angle = std::atan(t / std::sqrt(d));
    const double slope = scale * std::pow(std::cos(angle), d + 1) / std::sqrt(d);
    const double step = (0.95 - scale * power_of_cosine_integral(angle, d - 1)) / slope;
    t += step;
    if (step < 1e-10 * t) break;
  }
  return t;
}

Interval accuracy_interval(std::span<const ProblemCount> problems) {
  std::vector<double> values;
  std::vector<ProblemCount> counts;
  double sum = 0;
  for (const ProblemCount& problem : problems) {
    if (problem.graded == 0) continue;
    counts.push_back(problem);
    values.push_back(problem.accuracy());
    sum += values.back();
  }
  const Interval interval = interval_by_spread(values);
  const double count = static_cast<double>(values.size());
  if (values.size() < 2 || std::min(sum, count - sum) >= kFewProblems) return interval;
  const Interval model = beta_binomial_interval(counts, sum / count);
  if (sum < count / 2) return {model.low, std::max(interval.high, model.high)};
  return {std::min(interval.low, model.low), model.high};
}

Interval mean_interval(std::span<const double> values) {
  // Coins: problems of one sample each.
  const double count = static_cast<double>(values.size());
  double sum = 0;
  bool coins = true;
  std::vector<ProblemCount> counts;
  for (const double value : values) {
    sum += value;
    coins = coins && (value == 0 || value == 1);
    counts.push_back({value == 1 ? 1 : 0, 1});
  }
  if (coins) return accuracy_interval(counts);
  const Interval interval = interval_by_spread(values);
  if (values.size() < 2 || std::min(sum, count - sum) >= kFewProblems) return interval;
  // So few problems matter that the variance may have missed some: the end away from 0 (or 1) is at
  // least that of values 0 or 1, which have the largest variance.
  const Interval widest = wilson(sum / count, count, kNormalQuantile);
  if (sum < count / 2) return {interval.low, std::max(interval.high, widest.high)};
  return {std::min(interval.low, widest.low), interval.high};
}

Interval average_interval(std::span<const Estimate> estimates) {
  if (estimates.empty()) return {};
  double sum = 0, below = 0, above = 0;
  for (const Estimate& estimate : estimates) {
    sum += estimate.value;
    below += std::pow(estimate.value - estimate.interval.low, 2);
    above += std::pow(estimate.interval.high - estimate.value, 2);
  }
  const double count = static_cast<double>(estimates.size());
  return {(sum - std::sqrt(below)) / count, (sum + std::sqrt(above)) / count};
}

Difference paired_difference(std::span<const ProblemCount> a, std::span<const ProblemCount> b) {
  ANTISD_CHECK_EQ(a.size(), b.size());
  std::vector<double> values;
  double noise = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].graded == 0 || b[i].graded == 0) continue;
    values.push_back(a[i].accuracy() - b[i].accuracy());
    noise += 0.25 / static_cast<double>(a[i].graded) + 0.25 / static_cast<double>(b[i].graded);
  }
  Difference difference;
  difference.problems = std::ssize(values);
  if (values.empty()) return difference;
  const double count = static_cast<double>(values.size());
  if (values.size() == 1) {
    difference.mean = values.front();
    difference.interval = {-1, 1};
    return difference;
  }
  const auto [mean, variance] = spread_of(values);
  // Adds a problem whose difference is only sampling noise (at accuracy 1/2): without it, two
  // models that agree on every problem of a small benchmark would have an interval of width 0.
  const double widened = variance + noise / count / (count * count);
  const double half = student_quantile(count - 1) * std::sqrt(widened);
  difference.mean = mean;
  difference.interval = {std::max(-1.0, mean - half), std::min(1.0, mean + half)};
  return difference;
}

}  // namespace antisd::inline eval
