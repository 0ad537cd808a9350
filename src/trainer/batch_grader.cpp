#include "trainer/batch_grader.h"

#include "core/check.h"

namespace antisd {

GradeRequest grade_request(const Problem& problem, std::string response) {
  return {.response = std::move(response),
          .answer = problem.answer,
          .tests = problem.tests,
          .problem = prompt_text(problem)};
}

void BatchGrader::start(std::size_t group, const Prompt& prompt, const RolloutGroup& rollouts) {
  const Problem& problem = *prompt.problem;
  for (std::size_t i = 0; i < rollouts.rollouts.size(); ++i) {
    const Rollout& rollout = rollouts.rollouts[i];
    if (rollout.truncated()) continue;
    stage_.submit(grade_request(problem, rollout.text));
    submitted_.emplace_back(group, i);
  }
}

GradeCounts BatchGrader::finish(RolloutBatch& batch) {
  for (RolloutGroup& group : batch.groups) {
    for (Rollout& rollout : group.rollouts) {
      if (rollout.truncated()) rollout.grade = {.reward = 0.0, .reason = "truncated"};
    }
  }
  const std::vector<std::pair<std::size_t, std::size_t>> submitted = std::move(submitted_);
  submitted_.clear();
  std::vector<Score> scores = stage_.finish();
  ANTISD_CHECK_EQ(scores.size(), submitted.size());
  GradeCounts counts{.asked = std::ssize(scores), .graded = 0, .last_reason = {}};
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const auto [group, sample] = submitted[k];
    Score& score = scores[k];
    const std::size_t rollout = group * batch.group_size() + sample;
    if (score.error) throw BadRewardError(score.reason, rollout);
    if (score.reward && !(*score.reward >= 0 && *score.reward <= 1))
      throw BadRewardError(fmt::format("a reward is {}, not 0 to 1", *score.reward), rollout);
    counts.graded += score.reward.has_value();
    if (!score.reward) counts.last_reason = score.reason;
    batch.groups[group].rollouts[sample].grade = {.reward = score.reward,
                                                  .reason = std::move(score.reason),
                                                  .passed = score.passed,
                                                  .total = score.total};
  }
  return counts;
}

}  // namespace antisd
