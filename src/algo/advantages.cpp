#include "algo/advantages.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace antisd::inline algo {

Advantages group_advantages(std::span<const std::optional<double>> rewards) {
  if (rewards.size() < 2) {
    throw InputError("a group of one response has no advantage to learn from",
                     {.where = "rollout.group_size", .remedy = "use at least 2; the paper uses 8"});
  }
  std::vector<double> graded;
  for (const auto& reward : rewards) {
    if (reward) graded.push_back(*reward);
  }
  const double count = static_cast<double>(graded.size());
  double mean = 0, squares = 0;
  for (const double reward : graded)
    mean += reward / count;
  for (const double reward : graded)
    squares += (reward - mean) * (reward - mean);
  // Equal rewards are detected by comparison: a rounded mean could leave a small advantage.
  const bool all_equal =
      std::adjacent_find(graded.begin(), graded.end(), std::not_equal_to<>()) == graded.end();
  const double deviation = std::sqrt(squares / (count - 1));

  Advantages advantages(rewards.size());
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    if (rewards[i]) advantages[i] = all_equal ? 0 : (*rewards[i] - mean) / (deviation + 1e-6);
  }
  return advantages;
}

void set_advantages(ResponseBatch& batch) {
  for (ResponseGroup& group : batch.groups) {
    std::vector<std::optional<double>> rewards;
    for (const Response& response : group.responses)
      rewards.push_back(response.verdict.reward);
    const Advantages advantages = group_advantages(rewards);
    for (std::size_t i = 0; i < advantages.size(); ++i)
      group.responses[i].group_advantage = advantages[i];
  }
}

}  // namespace antisd::inline algo
