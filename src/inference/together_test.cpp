#include "inference/together.h"

#include <mutex>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "dist/in_process.h"
#include "model/weights.h"

namespace antisd::inline inference {
namespace {

std::vector<std::int32_t> wave(int count, int seed) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < count; ++i)
    ids.push_back((seed + 11 * i) % 40);
  return ids;
}

CausalLm model_of_rank() {
  at::set_num_threads(1);
  return load_model(testing::fixture("model/qwen3_gqa_tied"), at::kCPU, at::kFloat);
}

// Prompts of several lengths, some the same, so that batches share prefixes.
std::vector<ScoreRequest> some_requests(int count) {
  std::vector<ScoreRequest> requests;
  for (int i = 0; i < count; ++i)
    requests.push_back({wave(5 + 6 * (i / 3 % 4), i / 3), wave(3 + i % 7, 5 * i)});
  return requests;
}

void expect_same(const std::vector<TokenScores>& found, const std::vector<TokenScores>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].logp, expected[i].logp) << i;
    EXPECT_EQ(found[i].entropy, expected[i].entropy) << i;
  }
}

TEST(Together, ScoresAreTheBitsOfOneRank) {
  const CausalLm model = model_of_rank();
  for (const int count : {0, 1, 200}) {
    const std::vector<ScoreRequest> requests = some_requests(count);
    const std::vector<TokenScores> expected = score(model, requests);
    for (const int size : {2, 3}) {
      run_ranks(size, [&](Communicator& ranks) {
        expect_same(score_together(ranks, model_of_rank(), requests, {}), expected);
      });
    }
  }
}

TEST(Together, PartsOfTheWorkAreDisjoint) {
  const CausalLm model = model_of_rank();
  const std::vector<ScoreRequest> requests = some_requests(200);
  std::vector<int> scored(requests.size(), 0);
  for (std::size_t part = 0; part < 3; ++part) {
    const std::vector<TokenScores> own =
        score(model, requests, {.pack = {}, .part = part, .parts = 3});
    for (std::size_t i = 0; i < own.size(); ++i)
      scored[i] += !own[i].logp.empty();
  }
  EXPECT_THAT(scored, ::testing::Each(1));
}

TEST(Together, SamplesAreThoseOfOneRank) {
  std::vector<RolloutRequest> requests;
  for (int i = 0; i < 5; ++i)
    requests.push_back({wave(4 + i, i), 3, static_cast<std::uint32_t>(i)});
  RolloutOptions options;
  options.max_new_tokens = 12;
  options.seed = 9;
  std::vector<std::vector<Response>> expected(requests.size());
  RolloutEngine engine;
  engine.generate(model_of_rank(), requests, options,
                  [&](SampleGroup& group) { expected[group.request] = group.samples; });
  for (const int size : {1, 2, 7}) {
    run_ranks(size, [&](Communicator& ranks) {
      // Only rank 0 has the requests.
      const std::vector<RolloutRequest> given =
          given_by_first(ranks, ranks.rank() == 0 ? std::span<const RolloutRequest>(requests)
                                                  : std::span<const RolloutRequest>());
      RolloutEngine own;
      const std::vector<SampleGroup> groups =
          generate_together(ranks, own, model_of_rank(), given, options);
      ASSERT_EQ(groups.size(), requests.size());
      for (std::size_t g = 0; g < groups.size(); ++g) {
        EXPECT_EQ(groups[g].request, g);
        ASSERT_EQ(groups[g].samples.size(), 3u);
        for (std::size_t s = 0; s < 3; ++s) {
          EXPECT_EQ(groups[g].samples[s].ids, expected[g][s].ids);
          EXPECT_EQ(groups[g].samples[s].sampling_logp, expected[g][s].sampling_logp);
          EXPECT_EQ(groups[g].samples[s].raw_logp, expected[g][s].raw_logp);
          EXPECT_EQ(groups[g].samples[s].finish, expected[g][s].finish);
        }
      }
    });
  }
}

}  // namespace
}  // namespace antisd::inline inference
