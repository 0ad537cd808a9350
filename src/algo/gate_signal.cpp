#include "algo/gate_signal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace antisd::inline algo {
namespace {

double mean(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<float> all_tokens(std::span<const TokenScores> scores,
                              std::vector<float> TokenScores::*what) {
  std::vector<float> values;
  for (const TokenScores& score : scores)
    values.insert(values.end(), (score.*what).begin(), (score.*what).end());
  return values;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double perplexity(std::span<const float> logp) {
  return std::exp(-mean(logp));
}

std::vector<float> gate_values(const Method& method, std::span<const TokenScores> teacher,
                               std::span<const TokenScores> student) {
  switch (method.gate.signal) {
    case GateSignal::kEntropy:
      return all_tokens(method.teacher ? teacher : student, &TokenScores::entropy);
    case GateSignal::kStudentPerplexity:
      return all_tokens(student, &TokenScores::logp);
    case GateSignal::kTeacherPerplexity: {
      std::vector<float> values;
      for (const TokenScores& score : teacher) {
        if (!score.logp.empty()) values.push_back(static_cast<float>(perplexity(score.logp)));
      }
      return values;
    }
    case GateSignal::kNone:
      break;
  }
  return {};
}

GateInput gate_statistic(const GateRules& rules, std::span<const float> values) {
  switch (rules.signal) {
    case GateSignal::kEntropy:
      if (rules.statistic == GateStatistic::kMean) return mean(values);
      return {median({values.begin(), values.end()}), mean(values)};
    case GateSignal::kStudentPerplexity:
      return perplexity(values);
    case GateSignal::kTeacherPerplexity: {
      std::vector<float> kept;
      for (const float value : values) {
        if (rules.max_perplexity == 0 || value <= rules.max_perplexity) kept.push_back(value);
      }
      return mean(kept);
    }
    case GateSignal::kNone:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

TeacherSummary summarise_teacher(std::span<const TokenScores> teacher) {
  const std::vector<float> entropies = all_tokens(teacher, &TokenScores::entropy);
  return {.entropy_mean = mean(entropies),
          .entropy_median = median({entropies.begin(), entropies.end()}),
          .perplexity = perplexity(all_tokens(teacher, &TokenScores::logp))};
}

}  // namespace antisd::inline algo
