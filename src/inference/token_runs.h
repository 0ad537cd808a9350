// Sequences cut into runs that go through the model together: one rule for scoring, for the
// update's micro-batches and for documents.
//
//   for (const IndexRange run : cut_runs(items, {.most = 32'768})) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace antisd::inline inference {

// The cost of a sequence.
struct RunItem {
  std::int64_t tokens = 0;
  std::int64_t shared = 0;  // leading tokens in common with the item before: computed once
};

struct RunLimits {
  std::int64_t most = 0;  // tokens per run; a longer sequence is a run by itself
  // 0: a run is as long as `most` allows. Otherwise it ends once it has this many tokens and
  // sixteen times as many as the next item would share with it: recomputing those then costs
  // little.
  std::int64_t enough = 0;
};

struct IndexRange {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
  bool operator==(const IndexRange&) const = default;
};

// In the order of the items, so timing changes nothing.
std::vector<IndexRange> cut_runs(std::span<const RunItem> items, const RunLimits& limits);

// At most `most` runs, such that the longest takes as little time as possible. The time of an item
// is its tokens and, for attention, their product with the length. There are fewer runs than `most`
// where items are too few or too unequal.
std::vector<IndexRange> cut_evenly(std::span<const RunItem> items, std::int64_t most);

// The part of `parts` that each run goes to: the one that has the fewest tokens so far.
std::vector<std::size_t> deal_runs(std::span<const RunItem> items, std::span<const IndexRange> runs,
                                   std::size_t parts);

}  // namespace antisd::inline inference
