#include "trainer/alike_groups.h"

#include <gmock/gmock.h>

namespace antisd::inline trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Rewards = std::vector<std::vector<std::optional<double>>>;

ResponseBatch batch_of(const Rewards& rewards) {
  ResponseBatch batch;
  for (const auto& group : rewards) {
    ResponseGroup& made = batch.groups.emplace_back();
    for (const std::optional<double>& reward : group)
      made.responses.emplace_back().verdict.reward = reward;
  }
  return batch;
}

Method method_named(const std::string& name) {
  MethodConfig config;
  config.name = name;
  return resolve_method(config, {});
}

// The steps, from 1, at which it warns.
std::vector<int> spoken(AlikeGroups& alike, const Rewards& rewards, int steps) {
  std::vector<int> at;
  for (int step = 1; step <= steps; ++step) {
    if (alike.observe(batch_of(rewards))) at.push_back(step);
  }
  return at;
}

TEST(AlikeGroups, SpeaksAfterFiveStepsAndThenRarely) {
  AlikeGroups alike(method_named("grpo"));
  EXPECT_THAT(spoken(alike, {{0, 0}, {1, 1}}, 600), ::testing::ElementsAre(5, 50, 500));
  EXPECT_FALSE(alike.observe(batch_of({{0, 0}, {1, 0}})));  // one group differs: starts again
  EXPECT_THAT(spoken(alike, {{0, 0}}, 10), ::testing::ElementsAre(5));
}

TEST(AlikeGroups, WhatHasNoGradeSaysNothing) {
  AlikeGroups alike(method_named("grpo"));
  EXPECT_THAT(spoken(alike, {{0, 0}}, 4), ::testing::IsEmpty());
  EXPECT_FALSE(alike.observe(batch_of({{std::nullopt, 0}, {std::nullopt, std::nullopt}})));
  EXPECT_TRUE(alike.observe(batch_of({{std::nullopt, 0, 0}})));
}

TEST(AlikeGroups, SaysWhatItMeansAndWhatMayHelp) {
  const auto warning = [](const char* method, const Rewards& rewards) {
    AlikeGroups alike(method_named(method));
    for (int step = 1; step < 5; ++step)
      alike.observe(batch_of(rewards));
    return alike.observe(batch_of(rewards)).value_or("");
  };
  EXPECT_THAT(warning("grpo", {{0, 0}, {0, 0}}),
              AllOf(HasSubstr("5 consecutive steps"), HasSubstr("nothing is learnt"),
                    HasSubstr("rollout.max_sequence_tokens")));
  EXPECT_THAT(warning("grpo", {{1, 1}, {1, 1}}), HasSubstr("too easy"));
  EXPECT_THAT(warning("grpo", {{1, 1}, {0, 0}}), HasSubstr("always solved or never"));
  EXPECT_THAT(warning("antisd", {{0, 0}}),
              AllOf(HasSubstr("only the method's per-token term"), Not(HasSubstr("nothing is"))));
  EXPECT_EQ(warning("opd", {{0, 0}}), "");  // learns without rewards
}

}  // namespace
}  // namespace antisd::inline trainer
