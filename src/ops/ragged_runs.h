// How ragged sequences are cut into calls of cuDNN, whose plans are made for rounded shapes.
//
//   const RaggedHeads heads{32, 8, 128};
//   const std::vector<std::int32_t> offsets = {0, 9001, 9222};  // of queries and of keys
//   const RaggedRun all = forward_run(offsets, offsets, heads);
//   const std::vector<RaggedRun> runs = backward_runs(offsets, offsets, heads);
//
// A backward pass with a fixed order of sums writes the gradient of every score, so its memory
// grows with the square of the length: it runs over a few sequences, and if they are long over a
// few heads at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace antisd::inline ops {

struct RaggedHeads {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t group() const { return heads / kv_heads; }  // query heads of a key's head
  bool operator==(const RaggedHeads&) const = default;
};

// Sequences [first, last), `heads` query heads in each call: all, those of some heads of keys, or
// part of one's.
struct RaggedRun {
  std::size_t first = 0, last = 0;
  std::int64_t heads = 0;
  std::int64_t sequences = 0, query_length = 0, key_length = 0;  // of the plan
  std::int64_t query_rows = 0, key_rows = 0;                     // of the plan, one to spare
  bool prefix = false;  // some sequence has more keys than queries

  // Heads of keys in each call, and calls that share one.
  std::int64_t kv_heads(const RaggedHeads& all) const;
  std::int64_t parts(const RaggedHeads& all) const;
};

// A call's memory stays below the first where it can. One sequence and one head may take up to the
// second: 40,960 tokens.
struct RaggedLimits {
  double bytes = 2.0 * (1 << 30), longest_bytes = 4.0 * (1 << 30);
};

// The length of the plan for a sequence: a power of two from 256 to 16,384, beyond it a multiple of
// 8,192, so that few plans serve all batches.
std::int64_t plan_length(std::int64_t length);

RaggedRun forward_run(std::span<const std::int32_t> query_offsets,
                      std::span<const std::int32_t> key_offsets, const RaggedHeads& heads);

// In the order of the sequences; none if a sequence is too long.
std::vector<RaggedRun> backward_runs(std::span<const std::int32_t> query_offsets,
                                     std::span<const std::int32_t> key_offsets,
                                     const RaggedHeads& heads, const RaggedLimits& limits = {});

// Of the workspace of one call, and of the parts of the gradients of keys and values that are added
// up after the run.
double run_bytes(const RaggedRun& run, const RaggedHeads& heads);

// The most that any batch of so many tokens needs, in sequences that are at most so long; 0 where
// one of `longest` tokens is too long.
double most_run_bytes(std::int64_t tokens, std::int64_t longest, const RaggedHeads& heads);

// The same of a backward pass in any order of sums: of its gradients in fp32.
double any_order_bytes(std::int64_t tokens, const RaggedHeads& heads);

}  // namespace antisd::inline ops
