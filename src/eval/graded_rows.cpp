#include "eval/graded_rows.h"

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"

namespace antisd::inline eval {

std::vector<SampleRow> graded_rows(const Problem& problem, const GradedGroup& graded,
                                   std::span<const Response> responses) {
  ANTISD_CHECK_EQ(graded.verdicts.size(), responses.size());
  std::vector<SampleRow> rows;
  for (std::size_t i = 0; i < responses.size(); ++i) {
    const Response& response = responses[i];
    const Verdict& verdict = graded.verdicts[i];
    if (!verdict.usable()) {
      throw RunError(fmt::format("the reward of problem '{}', sample {} is {}", problem.id, i,
                                 *verdict.reward),
                     {.where = "reward", .remedy = "a reward is a finite number; fix the grader"});
    }
    std::optional<bool> correct;
    if (!verdict.failed()) correct = verdict.correct();
    rows.push_back({.id = problem.id,
                    .problem = static_cast<std::int64_t>(graded.group),
                    .sample = static_cast<std::int64_t>(i),
                    .response = response.text,
                    .extracted = verdict.extracted,
                    .correct = correct,
                    .reason = verdict.reason,
                    .truncated = response.truncated(),
                    .tokens = std::ssize(response.ids),
                    .settings = ""});
  }
  return rows;
}

}  // namespace antisd::inline eval
