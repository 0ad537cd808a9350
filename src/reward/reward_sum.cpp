#include "reward/reward_sum.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace antisd::inline reward {

RewardSum::RewardSum(std::unique_ptr<Grader> grader, RewardSumOptions options,
                     std::vector<WeightedTerm> terms)
    : grader_(std::move(grader)), options_(options), terms_(std::move(terms)) {}

Verdict RewardSum::sum(Verdict own, std::span<const Verdict> terms) const {
  if (own.failed()) return own;
  own.right = *own.reward >= options_.correct_at;
  if (terms_.empty() && options_.weight == 1) return own;
  own.parts[kGraderPart] = *own.reward;
  double total = options_.weight * *own.reward;
  const auto fail = [&own](std::string reason) {
    own.reward.reset();
    own.right.reset();
    own.reason = std::move(reason);
    return own;
  };
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].failed())
      return fail(fmt::format("reward.terms.{}: {}", terms_[i].name, terms[i].reason));
    own.parts[terms_[i].name] = *terms[i].reward;
    total += terms_[i].weight * *terms[i].reward;
  }
  if (!std::isfinite(total)) return fail("the sum of the reward's terms is not finite");
  own.reward = total;
  return own;
}

Verdict RewardSum::grade(const GradeRequest& request) {
  Verdict own = grader_->grade(request);
  std::vector<Verdict> terms;
  if (!own.failed()) {
    for (WeightedTerm& term : terms_)
      terms.push_back(term.grader->grade(request));
  }
  return sum(std::move(own), terms);
}

bool RewardSum::grades_groups() const {
  return grader_->grades_groups() || std::ranges::any_of(terms_, [](const WeightedTerm& term) {
           return term.grader->grades_groups();
         });
}

std::vector<Verdict> RewardSum::grade_group(std::span<const GradeRequest> requests) {
  std::vector<Verdict> verdicts = grader_->grade_group(requests);
  std::vector<std::vector<Verdict>> terms(requests.size());
  for (WeightedTerm& term : terms_) {
    std::vector<Verdict> found = term.grader->grade_group(requests);
    for (std::size_t i = 0; i < requests.size(); ++i)
      terms[i].push_back(std::move(found[i]));
  }
  for (std::size_t i = 0; i < requests.size(); ++i)
    verdicts[i] = sum(std::move(verdicts[i]), terms[i]);
  return verdicts;
}

void RewardSum::probe(const GradeRequest& request) {
  grader_->probe(request);
  for (WeightedTerm& term : terms_)
    term.grader->probe(request);
}

std::vector<std::string> RewardSum::take_warnings() {
  std::vector<std::string> warnings = grader_->take_warnings();
  for (WeightedTerm& term : terms_)
    std::ranges::move(term.grader->take_warnings(), std::back_inserter(warnings));
  return warnings;
}

}  // namespace antisd::inline reward
