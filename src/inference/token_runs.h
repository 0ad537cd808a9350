// Sequences cut into runs that go through the model together: the one rule for scoring, for the
// update's micro-batches and for documents.
//
//   for (const IndexRange run : cut_runs(items, {.most = 32'768})) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace antisd::inline inference {

// What a sequence costs.
struct RunItem {
  std::int64_t tokens = 0;
  std::int64_t shared = 0;  // first tokens that it shares with the item before: computed once
};

struct RunLimits {
  std::int64_t most = 0;  // tokens of a run; a longer sequence goes alone
  // 0: a run is as long as it may be. Else it ends once it has so many tokens, and sixteen times
  // as many as the next item would share with it: what is computed twice then hardly matters.
  std::int64_t enough = 0;
};

struct IndexRange {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
  bool operator==(const IndexRange&) const = default;
};

// In the order of the items, whatever finished first, so that timing changes nothing.
std::vector<IndexRange> cut_runs(std::span<const RunItem> items, const RunLimits& limits);

}  // namespace antisd::inline inference
