#include "algo/token_divergence.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/check.h"

namespace antisd::inline algo {
namespace {

// Smaller buckets of SDPO are set to this: the k probabilities may sum to 1 or, rounded, slightly
// more.
constexpr double kSmallest = 1e-12;
// Where no bucket is a difference, only a probability that was rounded to 0 is raised.
constexpr double kLeastProbability = 1e-40;

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

struct BucketDerivative {
  double loss = 0;
  std::vector<double> by_probability;  // d loss / d P, but for a constant, which has no effect
};

BucketDerivative divergence(const std::vector<double>& p, const std::vector<double>& q,
                            TokenDivergence kind, double alpha) {
  BucketDerivative result;
  for (std::size_t b = 0; b < p.size(); ++b) {
    switch (kind) {
      case TokenDivergence::kForwardKl:
        result.loss += q[b] * std::log(q[b] / p[b]);
        result.by_probability.push_back(-q[b] / p[b]);
        break;
      case TokenDivergence::kReverseKl:
        result.by_probability.push_back(std::log(p[b] / q[b]));
        result.loss += p[b] * result.by_probability.back();
        break;
      case TokenDivergence::kJsd:  // d loss / d P = (1 - alpha) ln(P / M): other terms cancel
        const double m = (1 - alpha) * p[b] + alpha * q[b];
        const double student_part = (1 - alpha) * std::log(p[b] / m);
        result.loss += alpha * q[b] * std::log(q[b] / m) + p[b] * student_part;
        result.by_probability.push_back(student_part);
        break;
    }
  }
  return result;
}

std::vector<double> raised(std::span<const double> probabilities) {
  std::vector<double> result(probabilities.begin(), probabilities.end());
  for (double& probability : result)
    probability = std::max(probability, kLeastProbability);
  return result;
}

}  // namespace

SdpoLoss sdpo_loss(std::span<const double> student_logp, std::span<const double> teacher_logp,
                   double alpha) {
  ANTISD_CHECK_EQ(student_logp.size(), teacher_logp.size());
  ANTISD_CHECK(alpha > 0 && alpha < 1);
  const std::vector<double> p = buckets(student_logp), q = buckets(teacher_logp);
  const BucketDerivative found = divergence(p, q, TokenDivergence::kJsd, alpha);
  SdpoLoss result{.loss = found.loss, .gradient = {}};
  for (std::size_t b = 0; b < student_logp.size(); ++b)
    result.gradient.push_back(p[b] * (found.by_probability[b] - found.by_probability.back()));
  return result;
}

BucketLoss bucket_loss(std::span<const double> student, std::span<const double> teacher,
                       const DivergenceRules& rules) {
  ANTISD_CHECK_EQ(student.size(), teacher.size());
  ANTISD_CHECK(rules.divergence != TokenDivergence::kJsd || (rules.alpha > 0 && rules.alpha < 1));
  const std::vector<double> p = raised(student), q = raised(teacher);
  const BucketDerivative found = divergence(p, q, rules.divergence, rules.alpha);
  double mean = 0;  // under P
  for (std::size_t b = 0; b < p.size(); ++b)
    mean += p[b] * found.by_probability[b];
  BucketLoss result{.loss = found.loss, .by_logit = {}};
  for (std::size_t b = 0; b < p.size(); ++b)
    result.by_logit.push_back(p[b] * found.by_probability[b] - p[b] * mean);
  return result;
}

std::string DivergenceRules::text() const {
  const std::string name = divergence == TokenDivergence::kForwardKl
                               ? "the forward KL divergence, KL(teacher, student),"
                           : divergence == TokenDivergence::kReverseKl
                               ? "the reverse KL divergence, KL(student, teacher),"
                               : fmt::format("the JSD of student and teacher, alpha {},", alpha);
  if (tokens == DistilledTokens::kAll) return name + " over the whole vocabulary";
  return fmt::format("{} on the {}'s {} likeliest tokens and the rest", name,
                     tokens == DistilledTokens::kStudentsTop ? "student" : "teacher", top_k);
}

}  // namespace antisd::inline algo
