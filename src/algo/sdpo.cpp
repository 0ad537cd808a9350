#include "algo/sdpo.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace antisd::inline algo {
namespace {

// Smaller buckets are set to this: the k probabilities may sum to 1 or, rounded, slightly more.
constexpr double kSmallest = 1e-12;

std::vector<double> buckets(std::span<const double> logp) {
  std::vector<double> probabilities;
  double rest = 1;
  for (const double value : logp) {
    probabilities.push_back(std::max(std::exp(value), kSmallest));
    rest -= probabilities.back();
  }
  probabilities.push_back(std::max(rest, kSmallest));
  return probabilities;
}

}  // namespace

SdpoLoss sdpo_loss(std::span<const double> student_logp, std::span<const double> teacher_logp,
                   double alpha) {
  ANTISD_CHECK_EQ(student_logp.size(), teacher_logp.size());
  ANTISD_CHECK(alpha > 0 && alpha < 1);
  const std::vector<double> p = buckets(student_logp), q = buckets(teacher_logp);

  SdpoLoss result;
  std::vector<double> by_probability;  // d loss / d P = (1 - alpha) ln(P / M): other terms cancel
  for (std::size_t b = 0; b < p.size(); ++b) {
    const double m = (1 - alpha) * p[b] + alpha * q[b];
    const double student_part = (1 - alpha) * std::log(p[b] / m);
    result.loss += alpha * q[b] * std::log(q[b] / m) + p[b] * student_part;
    by_probability.push_back(student_part);
  }
  for (std::size_t b = 0; b < student_logp.size(); ++b)
    result.gradient.push_back(p[b] * (by_probability[b] - by_probability.back()));
  return result;
}

}  // namespace antisd::inline algo
