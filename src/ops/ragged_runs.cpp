#include "ops/ragged_runs.h"

#include <algorithm>
#include <array>
#include <bit>

namespace antisd::inline ops {
namespace {

std::int64_t power_of_two(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

RaggedRun run_over(std::span<const std::int32_t> query_offsets,
                   std::span<const std::int32_t> key_offsets, std::size_t first, std::size_t last,
                   std::int64_t heads) {
  RaggedRun run{.first = first, .last = last, .heads = heads};
  std::int64_t queries = 0, keys = 0;
  for (std::size_t i = first; i < last; ++i) {
    const std::int64_t q = query_offsets[i + 1] - query_offsets[i];
    const std::int64_t k = key_offsets[i + 1] - key_offsets[i];
    queries = std::max(queries, q);
    keys = std::max(keys, k);
    run.prefix |= q != k;
  }
  run.sequences = power_of_two(static_cast<std::int64_t>(last - first));
  run.query_length = plan_length(queries);
  run.key_length = plan_length(keys);
  run.query_rows = plan_length(query_offsets[last] - query_offsets[first] + 1);
  run.key_rows = plan_length(key_offsets[last] - key_offsets[first] + 1);
  return run;
}

// Numbers of heads that divide all into equal calls, from all down to one.
std::vector<std::int64_t> head_counts(const RaggedHeads& all) {
  std::vector<std::int64_t> counts;
  for (std::int64_t kv = all.kv_heads; kv >= 1; --kv)
    if (all.kv_heads % kv == 0) counts.push_back(kv * all.group());
  for (std::int64_t part = all.group() - 1; part >= 1; --part)
    if (all.group() % part == 0) counts.push_back(part);
  return counts;
}

}  // namespace

std::int64_t RaggedRun::kv_heads(const RaggedHeads& all) const {
  return std::max<std::int64_t>(1, heads / all.group());
}

std::int64_t RaggedRun::parts(const RaggedHeads& all) const {
  return std::max<std::int64_t>(1, all.group() / heads);
}

std::int64_t plan_length(std::int64_t length) {
  constexpr std::int64_t kShortest = 256, kLargestPower = 16'384, kStep = 8'192;
  if (length <= kLargestPower) return std::max(kShortest, power_of_two(length));
  return (length + kStep - 1) / kStep * kStep;
}

double run_bytes(const RaggedRun& run, const RaggedHeads& all) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double scores = 2 * number(run.sequences) * number(run.heads) * number(run.query_length) *
                        number(run.key_length);
  // Gradients of keys and values for each query head, which cuDNN adds up: two, fp32, as far apart
  // as the rows of all heads of keys.
  const double width = number(all.kv_heads * all.head_dim);
  const double ratio = number(run.heads / run.kv_heads(all));
  const double by_head = ratio > 1 ? 8 * width * ratio * number(run.key_rows) : 0;
  const double parts = number(run.parts(all));
  return scores + by_head + (parts > 1 ? 4 * parts * width * number(run.key_rows) : 0);
}

RaggedRun forward_run(std::span<const std::int32_t> query_offsets,
                      std::span<const std::int32_t> key_offsets, const RaggedHeads& heads) {
  return run_over(query_offsets, key_offsets, 0, query_offsets.size() - 1, heads.heads);
}

std::vector<RaggedRun> backward_runs(std::span<const std::int32_t> query_offsets,
                                     std::span<const std::int32_t> key_offsets,
                                     const RaggedHeads& heads, const RaggedLimits& limits) {
  const std::vector<std::int64_t> counts = head_counts(heads);
  const std::size_t sequences = query_offsets.size() - 1;
  std::vector<RaggedRun> runs;
  for (std::size_t first = 0; first < sequences; first = runs.back().last) {
    // As many heads as one sequence allows, then as many sequences.
    const auto over = [&](std::size_t last, std::int64_t count) {
      return run_over(query_offsets, key_offsets, first, last, count);
    };
    const auto fits = [&](const RaggedRun& run) { return run_bytes(run, heads) <= limits.bytes; };
    const auto count = std::ranges::find_if(
        counts, [&](std::int64_t count) { return fits(over(first + 1, count)); });
    RaggedRun run = over(first + 1, count == counts.end() ? 1 : *count);
    if (run_bytes(run, heads) > limits.longest_bytes) return {};
    while (run.last < sequences) {
      const RaggedRun longer = over(run.last + 1, run.heads);
      if (!fits(longer)) break;
      run = longer;
    }
    runs.push_back(run);
  }
  return runs;
}

double most_run_bytes(std::int64_t tokens, std::int64_t longest, const RaggedHeads& heads) {
  const std::array<std::int32_t, 2> one = {0, static_cast<std::int32_t>(longest)};
  const std::vector<RaggedRun> runs = backward_runs(one, one, heads);
  if (runs.empty()) return 0;
  // Sequences are put into a call until it reaches the limit, and short ones beside a long one have
  // its size.
  const double longest_bytes = run_bytes(runs[0], heads);
  return tokens > longest ? std::max(longest_bytes, RaggedLimits().bytes) : longest_bytes;
}

double any_order_bytes(std::int64_t tokens, const RaggedHeads& heads) {
  // Of queries once, of keys and values for each query head where several share a key's.
  const double by_head = heads.group() > 1 ? 3 : 1;
  return 4 * by_head * static_cast<double>(heads.heads * heads.head_dim) *
         static_cast<double>(plan_length(tokens + 1));
}

}  // namespace antisd::inline ops
