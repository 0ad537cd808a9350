#include "algo/advantages.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace antisd::inline algo {
namespace {

struct Spread {
  double count = 0, mean = 0, deviation = 0;  // with Bessel's correction; NaN of one value
  // By comparison: a rounded mean could leave a small difference.
  bool all_equal = true;
};

Spread spread_of(std::span<const std::optional<double>> rewards) {
  std::vector<double> graded;
  for (const auto& reward : rewards) {
    if (reward) graded.push_back(*reward);
  }
  Spread spread{.count = static_cast<double>(graded.size())};
  double squares = 0;
  for (const double reward : graded)
    spread.mean += reward / spread.count;
  for (const double reward : graded)
    squares += (reward - spread.mean) * (reward - spread.mean);
  spread.deviation = std::sqrt(squares / (spread.count - 1));
  spread.all_equal =
      std::adjacent_find(graded.begin(), graded.end(), std::not_equal_to<>()) == graded.end();
  return spread;
}

std::vector<std::optional<double>> rewards_of(const ResponseGroup& group) {
  std::vector<std::optional<double>> rewards;
  for (const Response& response : group.responses)
    rewards.push_back(response.shaped_reward ? response.shaped_reward : response.verdict.reward);
  return rewards;
}

}  // namespace

Advantages group_advantages(std::span<const std::optional<double>> rewards,
                            const AdvantageConfig& rules, double batch_deviation) {
  if (rewards.size() < 2) {
    throw InputError("a group of one response has no advantage to learn from",
                     {.where = "rollout.group_size", .remedy = "use at least 2; the paper uses 8"});
  }
  const Spread group = spread_of(rewards);
  // R - the mean of the others = (R - mean of all) n / (n - 1).
  const double widened = rules.baseline == "leave-one-out" ? group.count / (group.count - 1) : 1;
  const double deviation = rules.scale == "batch" ? batch_deviation : group.deviation;
  const double scale = rules.scale == "none" ? 1 : deviation + 1e-6;
  Advantages advantages(rewards.size());
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    if (rewards[i])
      advantages[i] = group.all_equal ? 0 : widened * (*rewards[i] - group.mean) / scale;
  }
  return advantages;
}

void set_advantages(ResponseBatch& batch, const AdvantageConfig& rules) {
  double batch_deviation = 0;
  if (rules.scale == "batch") {
    std::vector<std::optional<double>> all;
    for (const ResponseGroup& group : batch.groups)
      std::ranges::copy(rewards_of(group), std::back_inserter(all));
    batch_deviation = spread_of(all).deviation;
  }
  for (ResponseGroup& group : batch.groups) {
    const Advantages advantages = group_advantages(rewards_of(group), rules, batch_deviation);
    for (std::size_t i = 0; i < advantages.size(); ++i)
      group.responses[i].group_advantage = advantages[i];
  }
}

bool has_signal(const ResponseGroup& group) {
  return !spread_of(rewards_of(group)).all_equal;
}

}  // namespace antisd::inline algo
