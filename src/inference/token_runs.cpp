#include "inference/token_runs.h"

#include <algorithm>

namespace antisd::inline inference {

std::vector<IndexRange> cut_runs(std::span<const RunItem> items, const RunLimits& limits) {
  std::vector<IndexRange> runs;
  std::int64_t tokens = 0;  // of the run so far; shared ones count once
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& [own, shared] = items[i];
    const bool long_enough = limits.enough > 0 && tokens >= std::max(limits.enough, 16 * shared);
    if (runs.empty() || long_enough || tokens + own - shared > limits.most) {
      runs.push_back({i, i});
      tokens = own;
    } else {
      tokens += own - shared;
    }
    runs.back().end = i + 1;
  }
  return runs;
}

}  // namespace antisd::inline inference
