#include "trainer/alike_groups.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace antisd::inline trainer {
namespace {

constexpr std::int64_t kFirst = 5;   // consecutive steps
constexpr std::int64_t kRarer = 10;  // factor to the next warning

// What a step's groups show.
struct Seen {
  bool compared = false;  // some group has two grades
  bool differs = false;   // they differ in some group
  double low = 1, high = 0;
};

Seen look_at(const ResponseBatch& batch) {
  Seen seen;
  for (const ResponseGroup& group : batch.groups) {
    std::vector<double> rewards;
    for (const Response& response : group.responses) {
      if (response.verdict.reward) rewards.push_back(*response.verdict.reward);
    }
    if (rewards.size() < 2) continue;
    const auto [low, high] = std::minmax_element(rewards.begin(), rewards.end());
    seen.compared = true;
    seen.differs |= *low != *high;
    seen.low = std::min(seen.low, *low);
    seen.high = std::max(seen.high, *high);
  }
  return seen;
}

const char* advice(const Seen& seen) {
  if (seen.high == 0)
    return "All are 0: look at responses in log.txt. The problems may be too hard, "
           "rollout.max_sequence_tokens too short, or reward.kind and data.template ask for "
           "another "
           "form of answer than the model gives";
  if (seen.low == 1) return "All are 1: the problems are too easy for the model";
  return "Each problem is always solved or never: take others, a larger rollout.group_size or a "
         "higher rollout.temperature";
}

}  // namespace

std::optional<std::string> AlikeGroups::observe(const ResponseBatch& batch) {
  const Seen seen = look_at(batch);
  if (!counts_rewards_ || !seen.compared) return std::nullopt;
  if (seen.differs) {
    steps_ = 0;
    next_ = kFirst;
    return std::nullopt;
  }
  if (++steps_ < next_) return std::nullopt;
  next_ *= kRarer;
  return fmt::format(
      "for {} consecutive steps the rewards of each group were all equal: every group advantage is "
      "0, so {}. {}",
      steps_, has_term_ ? "only the method's per-token term acts" : "nothing is learnt",
      advice(seen));
}

}  // namespace antisd::inline trainer
