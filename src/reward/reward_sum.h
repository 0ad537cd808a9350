// A grader whose reward is a weighted sum: of another grader's and of further terms. What counts as
// correct stays the grader's to say.
//
//   std::vector<WeightedTerm> terms;
//   terms.push_back({"form", -0.5, std::make_unique<FormatTerm>("[a-z]*")});
//   RewardSum sum(std::move(grader), {.correct_at = 0.5}, std::move(terms));
//
// A part that fails leaves the response without a grade: a sum without it would be another reward.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reward/grader.h"

namespace antisd::inline reward {

struct WeightedTerm {
  std::string name;
  double weight = 1;
  std::unique_ptr<Grader> grader;
};

struct RewardSumOptions {
  double weight = 1;      // of the grader's own reward
  double correct_at = 1;  // from this own reward on, a response is correct
};

class RewardSum : public Grader {
 public:
  RewardSum(std::unique_ptr<Grader> grader, RewardSumOptions options,
            std::vector<WeightedTerm> terms);

  Verdict grade(const GradeRequest& request) override;
  // Groups where any of the parts does.
  bool grades_groups() const override;
  std::vector<Verdict> grade_group(std::span<const GradeRequest> requests) override;
  void probe(const GradeRequest& request) override;
  std::vector<std::string> take_warnings() override;

 private:
  // The reward so far and the rest of the terms, in their order.
  Verdict sum(Verdict own, std::span<const Verdict> terms) const;

  std::unique_ptr<Grader> grader_;
  RewardSumOptions options_;
  std::vector<WeightedTerm> terms_;
};

}  // namespace antisd::inline reward
