#include "ops/ragged_runs.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace antisd::inline ops {
namespace {

using Offsets = std::vector<std::int32_t>;

constexpr RaggedHeads kQwen{16, 8, 128};
constexpr double kGiB = 1 << 30;

Offsets ends(const std::vector<std::int32_t>& lengths) {
  Offsets offsets = {0};
  for (const std::int32_t length : lengths)
    offsets.push_back(offsets.back() + length);
  return offsets;
}

std::vector<RaggedRun> runs_of(const std::vector<std::int32_t>& lengths,
                               const RaggedHeads& heads = kQwen, const RaggedLimits& limits = {}) {
  return backward_runs(ends(lengths), ends(lengths), heads, limits);
}

TEST(RaggedRuns, LengthsOfPlansAreFew) {
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected = {
      {1, 256},         {256, 256},       {257, 512},       {9'001, 16'384},
      {16'384, 16'384}, {16'385, 24'576}, {32'768, 32'768}, {33'000, 40'960}};
  for (const auto& [length, plan] : expected)
    EXPECT_EQ(plan_length(length), plan) << length;
}

TEST(RaggedRuns, ForwardTakesAllInOneCall) {
  const RaggedRun run = forward_run(ends({5, 700, 30}), ends({5, 900, 30}), kQwen);
  EXPECT_EQ(run.first, 0);
  EXPECT_EQ(run.last, 3);
  EXPECT_EQ(run.heads, 16);
  EXPECT_EQ(run.sequences, 4);
  EXPECT_EQ(run.query_length, 1024);
  EXPECT_EQ(run.key_length, 1024);
  EXPECT_TRUE(run.prefix);
  EXPECT_FALSE(forward_run(ends({5, 700}), ends({5, 700}), kQwen).prefix);
}

TEST(RaggedRuns, ShortSequencesAreOneRun) {
  const auto runs = runs_of(std::vector<std::int32_t>(8, 2047));
  ASSERT_EQ(runs.size(), 1);
  EXPECT_EQ(runs[0].heads, 16);
  EXPECT_EQ(runs[0].parts(kQwen), 1);
  // The scores of 8 x 16 heads, 2 bytes each, and two gradients of 16 heads in fp32.
  EXPECT_EQ(run_bytes(runs[0], kQwen), 8. * 16 * 2048 * 2048 * 2 + 2. * 16 * 128 * 4 * 16'384);
}

TEST(RaggedRuns, LongSequencesAreCutByHeads) {
  // One head of 32,768 tokens has scores of 2 GiB, and the gradients of two of them are added up.
  const auto runs = runs_of({32'768, 100});
  ASSERT_EQ(runs.size(), 2);
  EXPECT_EQ(runs[0].heads, 1);
  EXPECT_EQ(runs[0].kv_heads(kQwen), 1);
  EXPECT_EQ(runs[0].parts(kQwen), 2);
  EXPECT_GT(run_bytes(runs[0], kQwen), 2 * kGiB);
  EXPECT_LT(run_bytes(runs[0], kQwen), 4 * kGiB);
  EXPECT_EQ(runs[1].heads, 16);
  // 16,384 tokens: 0.5 GiB a head, so those of one head of keys.
  EXPECT_EQ(runs_of({16'000})[0].heads, 2);
  EXPECT_EQ(runs_of({16'000})[0].parts(kQwen), 1);
}

TEST(RaggedRuns, TooLongForAFixedOrder) {
  for (const RaggedHeads& heads : {kQwen, RaggedHeads{32, 8, 128}, RaggedHeads{8, 8, 64}}) {
    EXPECT_FALSE(runs_of({1, 40'960}, heads).empty());
    EXPECT_TRUE(runs_of({1, 60'000}, heads).empty());
  }
}

// Whatever the lengths and limits: every sequence and head is computed once, in order, below the
// limit, and the plan is large enough.
TEST(RaggedRuns, CoverEverySequence) {
  for (int seed = 0; seed < 50; ++seed) {
    std::vector<std::int32_t> lengths;
    for (int i = 0; i < 1 + seed * 7 % 40; ++i)
      lengths.push_back(1 + (seed * 7919 + i * i * 104'729) % 3000);
    const RaggedLimits limits{.bytes = static_cast<double>(1 << (20 + seed % 10))};
    const Offsets offsets = ends(lengths);
    std::size_t next = 0;
    for (const RaggedRun& run : backward_runs(offsets, offsets, kQwen, limits)) {
      EXPECT_EQ(run.first, next);
      next = run.last;
      EXPECT_EQ(kQwen.heads % run.heads, 0);
      EXPECT_EQ(run.heads, run.kv_heads(kQwen) * kQwen.group() / run.parts(kQwen));
      EXPECT_GE(run.sequences, static_cast<std::int64_t>(run.last - run.first));
      EXPECT_GT(run.query_rows, offsets[run.last] - offsets[run.first]);
      for (std::size_t i = run.first; i < run.last; ++i)
        EXPECT_GE(run.query_length, lengths[i]);
      if (run.last - run.first > 1) {
        EXPECT_LE(run_bytes(run, kQwen), limits.bytes);
      }
    }
    EXPECT_EQ(next, lengths.size());
  }
}

TEST(RaggedRuns, MostBytesBoundEveryBatch) {
  const std::vector<std::vector<std::int32_t>> batches = {
      {600}, {2000, 9000, 1, 700}, {40'960}, {700, 1, 30, 1, 2, 9}, std::vector(50, 300)};
  for (const std::vector<std::int32_t>& lengths : batches) {
    const std::int32_t tokens = ends(lengths).back(), longest = std::ranges::max(lengths);
    const double most = most_run_bytes(tokens, longest, kQwen);
    EXPECT_LT(most, 4 * kGiB);
    for (const RaggedRun& run : runs_of(lengths))
      EXPECT_LE(run_bytes(run, kQwen), most);
  }
  EXPECT_EQ(most_run_bytes(100'000, 60'000, kQwen), 0);
}

}  // namespace
}  // namespace antisd::inline ops
