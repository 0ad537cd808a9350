#include "model/packed_batch.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace antisd::inline model {
namespace {

using Sequence = std::vector<std::int32_t>;

// A run of tokens that is computed once: tokens [begin, end) of every sequence in it, after those
// of its parent.
struct Segment {
  int parent = -1;
  std::int64_t begin = 0, end = 0;
  std::size_t sequence = 0;    // any sequence that contains it
  std::int64_t first_row = 0;  // of its tokens among the packed rows
};

// The tree of segments over sequences sorted by content: sequences with a long enough common prefix
// are children of a segment that holds it.
class SegmentTree {
 public:
  SegmentTree(std::span<const Sequence> sequences, PackOptions options)
      : sequences_(sequences), options_(options), leaf_of_(sequences.size()) {
    order_.resize(sequences.size());
    std::iota(order_.begin(), order_.end(), 0);
    if (!options.share || options.sums == SumOrder::kFixed) {
      for (const std::size_t s : order_)
        add_leaf(s, -1, 0);
      return;
    }
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return sequences[a] != sequences[b] ? sequences[a] < sequences[b] : a < b;
    });
    // common_[i]: number of leading tokens in common between the i-th and the next sequence in
    // order.
    for (std::size_t i = 0; i + 1 < order_.size(); ++i) {
      const Sequence &a = sequences[order_[i]], &b = sequences[order_[i + 1]];
      common_.push_back(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    }
    build(0, order_.size(), -1, 0);
  }

  std::vector<Segment>& segments() { return segments_; }
  int leaf_of(std::size_t sequence) const { return leaf_of_[sequence]; }

 private:
  int add_segment(int parent, std::int64_t begin, std::int64_t end, std::size_t sequence) {
    segments_.push_back({parent, begin, end, sequence});
    return static_cast<int>(segments_.size()) - 1;
  }

  void add_leaf(std::size_t sequence, int parent, std::int64_t begin) {
    const auto length = static_cast<std::int64_t>(sequences_[sequence].size());
    leaf_of_[sequence] = begin < length ? add_segment(parent, begin, length, sequence) : parent;
  }

  // Sequences order_[first, last) are below `parent`, which ends at token `begin`. Neighbours with
  // at least `least_shared` further common tokens get their own segment.
  void build(std::size_t first, std::size_t last, int parent, std::int64_t begin) {
    for (std::size_t i = first; i < last;) {
      std::size_t end = i + 1;
      std::int64_t shared = static_cast<std::int64_t>(sequences_[order_[i]].size());
      while (end < last && common_[end - 1] >= begin + options_.least_shared) {
        shared = std::min(shared, common_[end - 1]);
        ++end;
      }
      if (end == i + 1) {
        add_leaf(order_[i], parent, begin);
      } else {
        build(i, end, add_segment(parent, begin, shared, order_[i]), shared);
      }
      i = end;
    }
  }

  std::span<const Sequence> sequences_;
  PackOptions options_;
  std::vector<std::size_t> order_;
  std::vector<std::int64_t> common_;
  std::vector<Segment> segments_;
  std::vector<int> leaf_of_;
};

at::Tensor on_device(const std::vector<std::int32_t>& values, at::Device device) {
  return at::tensor(at::ArrayRef<std::int32_t>(values), at::kInt).to(device);
}

}  // namespace

PackedBatch pack(std::span<const Sequence> sequences, at::Device device, PackOptions options) {
  SegmentTree tree(sequences, options);
  std::vector<Segment>& segments = tree.segments();
  PackedBatch batch;
  std::vector<std::int64_t> ids;
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> key_rows;
  AttentionLayout& layout = batch.layout;
  layout.query_offsets = layout.key_offsets = {0};
  layout.sums = options.sums;
  bool shared = false;

  // Appends the rows of tokens [0, end) along the chain of segments.
  const auto chain_rows = [&](int segment, std::vector<std::int64_t>& out) {
    std::vector<int> chain;
    for (int s = segment; s >= 0; s = segments[s].parent)
      chain.push_back(s);
    for (auto s = chain.rbegin(); s != chain.rend(); ++s) {
      for (std::int64_t i = 0; i < segments[*s].end - segments[*s].begin; ++i) {
        out.push_back(segments[*s].first_row + i);
      }
    }
  };

  for (Segment& segment : segments) {  // parents precede their children
    segment.first_row = static_cast<std::int64_t>(ids.size());
    const Sequence& tokens = sequences[segment.sequence];
    for (std::int64_t i = segment.begin; i < segment.end; ++i) {
      ids.push_back(tokens[i]);
      batch.smallest_id = std::min(batch.smallest_id, tokens[i]);
      batch.largest_id = std::max(batch.largest_id, tokens[i]);
      positions.push_back(static_cast<std::int32_t>(i));
    }
    shared |= segment.parent >= 0;
    chain_rows(static_cast<int>(&segment - segments.data()), key_rows);
    layout.query_offsets.push_back(static_cast<std::int32_t>(ids.size()));
    layout.key_offsets.push_back(static_cast<std::int32_t>(key_rows.size()));
    layout.longest_query = std::max(layout.longest_query, segment.end - segment.begin);
    layout.longest_key = std::max(layout.longest_key, segment.end);
  }
  batch.longest_sequence = layout.longest_key;
  batch.rows.resize(sequences.size());
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    if (!sequences[s].empty()) chain_rows(tree.leaf_of(s), batch.rows[s]);
    ANTISD_CHECK_EQ(batch.rows[s].size(), sequences[s].size());
  }
  batch.ids = at::tensor(at::ArrayRef<std::int64_t>(ids), at::kLong).to(device);
  batch.positions = on_device(positions, device);
  layout.device_query_offsets = on_device(layout.query_offsets, device);
  layout.device_key_offsets = on_device(layout.key_offsets, device);
  if (shared)
    layout.key_rows = at::tensor(at::ArrayRef<std::int64_t>(key_rows), at::kLong).to(device);
  return batch;
}

}  // namespace antisd::inline model
