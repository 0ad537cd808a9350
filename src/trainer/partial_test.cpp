// Responses that go on in the next step (rollout.partial).
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "inference/scorer.h"
#include "run/checkpoint/checkpoint.h"
#include "trainer/ranks_testing.h"

namespace antisd::inline trainer {
namespace {

using ::testing::AllOf;
using testing::BreakingGrader;
using testing::error_of;
using testing::expect_same;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::outcome_of;
using testing::Settings;
using ::testing::SizeIs;
using testing::SmallTraining;
using testing::train_alone;
using testing::train_on;
using testing::TrainingOutcome;
using testing::weight_bytes;
using testing::with;

constexpr std::size_t kGroup = 4;
const Settings kPartial = {"rollout.partial=true", "rollout.partial_tokens=4"};

std::vector<Json> dump_of(const SmallTraining& training, int step) {
  return training.rows(fmt::format("rollouts/step-{:06}.jsonl", step));
}

// Ids of the groups of a run's dumps, by step.
std::map<int, std::vector<std::vector<Json>>> groups_of(const SmallTraining& training, int steps) {
  std::map<int, std::vector<std::vector<Json>>> groups;
  for (int step = 1; step <= steps; ++step) {
    for (const Json& row : dump_of(training, step)) {
      if (row["sample"] == 0) groups[step].emplace_back();
      groups[step].back().push_back(row["response_ids"]);
    }
  }
  return groups;
}

// With weights that stay as they are, every group that was drawn is trained on once, or carried at
// the end, with the tokens that it has without pauses.
TEST(Partial, WithTheSameWeightsNothingButTheStepChanges) {
  const Settings still = {"optim.lr=1e-30", "train.steps=6", "method.name=grpo"};
  SmallTraining plain(still), partial(with(still, kPartial));
  ASSERT_TRUE(plain.run());
  ASSERT_TRUE(partial.run());
  ASSERT_EQ(weight_bytes(plain.state->model), weight_bytes(partial.state->model));
  const auto expected = groups_of(plain, 6), found = groups_of(partial, 6);

  std::multiset<std::vector<Json>> drawn, trained;
  for (const auto& [step, groups] : expected)
    drawn.insert(groups.begin(), groups.end());
  std::size_t late = 0, trained_groups = 0;
  for (const auto& [step, groups] : found) {
    EXPECT_FALSE(groups.empty());
    for (const std::vector<Json>& group : groups) {
      ++trained_groups;
      late += std::ranges::count(expected.at(step), group) == 0;
      const auto at = drawn.find(group);
      ASSERT_TRUE(at != drawn.end()) << "step " << step;
      drawn.erase(at);
    }
  }
  EXPECT_GT(late, 4u);
  EXPECT_EQ(trained_groups + partial.state->carried.size(), 18u);
  // What is left has begun like a group that was drawn.
  for (const OpenGroup& open : partial.state->carried) {
    const auto begins = [&](const std::vector<Json>& group) {
      for (std::size_t i = 0; i < kGroup; ++i) {
        const auto ids = group[i].get<std::vector<TokenId>>();
        const std::vector<TokenId>& had = open.responses[i].ids;
        if (had.size() > ids.size() || !std::equal(had.begin(), had.end(), ids.begin()))
          return false;
        if (!open.responses[i].paused() && had.size() < ids.size()) return false;
      }
      return true;
    };
    const auto at = std::ranges::find_if(drawn, begins);
    ASSERT_TRUE(at != drawn.end());
    drawn.erase(at);
  }
  EXPECT_THAT(drawn, IsEmpty());
}

TEST(Partial, ABudgetThatNobodyReachesChangesNoBit) {
  const Settings settings = {"train.steps=3"};
  TrainingOutcome plain = train_alone(settings);
  TrainingOutcome partial =
      train_alone(with(settings, {"rollout.partial=true", "rollout.partial_tokens=24"}));
  EXPECT_TRUE(plain.weights == partial.weights);
  for (Json& row : partial.metrics) {
    EXPECT_EQ(row["rollout/carried_responses"], 0);
    for (const char* name :
         {"rollout/carried_groups", "rollout/carried_responses", "rollout/carried_tokens",
          "rollout/age/mean", "rollout/age/max", "rollout/old_tokens_fraction"})
      EXPECT_EQ(row.erase(name), 1u);
  }
  EXPECT_EQ(partial.metrics, plain.metrics);
}

// The log-probabilities that a row has are those of the policies that wrote its tokens.
TEST(Partial, OldTokensHaveTheLogProbabilitiesOfTheirPolicy) {
  SmallTraining training(with(kPartial, {"train.steps=6", "optim.lr=0.02", "checkpoint.every=1",
                                         "checkpoint.keep=9", "method.name=grpo"}));
  ASSERT_TRUE(training.run());
  std::map<std::int64_t, CausalLm> policies;  // by the steps they had done
  policies.emplace(0, load_model(training.files / "model", at::kCPU, at::kFloat));
  for (int step = 1; step < 6; ++step)
    policies.emplace(step, load_model(training.recorder->directory() / "checkpoints" /
                                          fmt::format("step-{:06}/model", step),
                                      at::kCPU, at::kFloat));
  int compared = 0;
  double apart = 0;  // from what the newest policy says
  for (int step = 1; step <= 6; ++step) {
    for (const Json& row : dump_of(training, step)) {
      const auto sampled = row["sampling_logp"].get<std::vector<float>>();
      const ScoreRequest request{row["prompt_ids"].get<std::vector<TokenId>>(),
                                 row["response_ids"].get<std::vector<TokenId>>()};
      std::size_t at = 0;
      for (const Json& span : row["policies"]) {
        const std::int64_t age = span[0].get<std::int64_t>();
        const TokenScores scores = score(policies.at(step - 1 - age), {&request, 1})[0];
        for (auto n = span[1].get<std::int64_t>(); n > 0; --n, ++at) {
          EXPECT_NEAR(sampled[at], scores.logp[at], 1e-4);
          if (age == 0) continue;
          ++compared;
          apart = std::max(apart, std::abs(row["student_logp"][at].get<double>() - sampled[at]));
        }
      }
      EXPECT_EQ(at, sampled.size());
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(apart, 0.1);
}

TEST(Partial, MetricsCountWhatIsCarried) {
  SmallTraining training(with(kPartial, {"train.steps=6", "rollout.partial_tokens=2"}));
  ASSERT_TRUE(training.run());
  double tokens = 0, oldest = 0, old = 0;
  const std::vector<Json> rows = training.rows("metrics.jsonl");
  for (const Json& row : rows) {
    tokens = std::max(tokens, row["rollout/carried_tokens"].get<double>());
    EXPECT_GE(row["rollout/carried_tokens"], 2 * row["rollout/carried_responses"].get<double>());
    oldest = std::max(oldest, row["rollout/age/max"].get<double>());
    old = std::max(old, row["rollout/old_tokens_fraction"].get<double>());
  }
  EXPECT_THAT(tokens, Gt(40));
  EXPECT_THAT(oldest, Gt(1));
  EXPECT_THAT(old, Gt(0.3));
  std::size_t left = 0;
  for (const OpenGroup& group : training.state->carried)
    left += group.to_sample(kGroup);
  EXPECT_EQ(rows.back()["rollout/carried_responses"].get<std::size_t>(), left);
}

// Tokens of older policies have other weights than 1, and the update is another one; those of this
// step's policy differ from 1 by the sampler's rounding.
TEST(Partial, OldTokensAreWeighedByTheirPolicy) {
  const Settings settings = with(kPartial, {"train.steps=5", "optim.lr=0.02", "method.name=grpo"});
  SmallTraining plain(settings), tis(with(settings, {"loss.rollout_correction=tis"}));
  ASSERT_TRUE(plain.run());
  ASSERT_TRUE(tis.run());
  EXPECT_FALSE(weight_bytes(plain.state->model) == weight_bytes(tis.state->model));
  double apart = 0;
  for (int step = 1; step <= 5; ++step) {
    for (const Json& row : dump_of(tis, step)) {
      std::size_t at = 0;
      for (const Json& span : row["policies"]) {
        for (auto n = span[1].get<std::int64_t>(); n > 0; --n, ++at) {
          const double away = std::abs(row["rollout_weight"][at].get<double>() - 1);
          if (span[0] == 0) EXPECT_LT(away, 1e-4);
          if (span[0] != 0) apart = std::max(apart, away);
        }
      }
    }
  }
  EXPECT_GT(apart, 0.1);
  EXPECT_FALSE(dump_of(plain, 1)[0].contains("rollout_weight"));
}

// Responses of one step that all go on: sampling goes on within the step until a group ends.
TEST(Partial, AStepAlwaysHasAGroup) {
  SmallTraining training({"rollout.partial=true", "rollout.partial_tokens=1", "train.steps=3",
                          "rollout.prompts_per_step=1"});
  ASSERT_TRUE(training.run());
  for (int step = 1; step <= 3; ++step)
    EXPECT_GE(dump_of(training, step).size(), kGroup);
}

TEST(Partial, RanksGiveTheBitsOfOne) {
  for (const Settings& more :
       {Settings{"loss.rollout_correction=tis"}, Settings{"rollout.refill=2"},
        Settings{"loss.rollout_correction=mask", "loss.rollout_correction_cap=1.05"},
        Settings{"train.minibatches=2", "method.name=sdpo", "method.sdpo.teacher_ema=0.2"}}) {
    const Settings settings = with(
        with(kPartial, more), {"train.steps=4", "train.micro_batches=3", "checkpoint.every=2"});
    const TrainingOutcome expected = train_alone(settings);
    expect_same(train_on(3, settings), expected);
    expect_same(train_on(5, settings), expected);
  }
}

// A new process takes up the carried responses from the checkpoint.
TEST(Partial, AResumedRunGoesOnWithThem) {
  const Settings settings =
      with(kPartial, {"train.steps=6", "checkpoint.every=1", "checkpoint.keep=9", "optim.lr=0.01"});
  SmallTraining whole(settings);
  ASSERT_TRUE(whole.run());
  const TrainingOutcome expected = outcome_of(whole);
  std::size_t carried = 0;
  for (const int done : {1, 3, 5}) {
    const std::filesystem::path checkpoint =
        whole.recorder->directory() / "checkpoints" / fmt::format("step-{:06}", done);
    SmallTraining again(settings);
    resume(*again.state, checkpoint);
    carried += again.state->carried.size();
    EXPECT_EQ(std::filesystem::exists(checkpoint / "carried.safetensors"),
              !again.state->carried.empty());
    ASSERT_TRUE(again.run());
    const TrainingOutcome found = outcome_of(again);
    EXPECT_TRUE(found.weights == expected.weights);
    for (int step = done + 1; step <= 6; ++step)
      EXPECT_EQ(dump_of(again, step), dump_of(whole, step));
    const std::string last = "checkpoints/step-000006/carried.safetensors";
    ASSERT_TRUE(expected.checkpoints.contains(last));
    EXPECT_TRUE(found.checkpoints.at(last) == expected.checkpoints.at(last));
  }
  EXPECT_GT(carried, 2u);
}

TEST(Partial, SwitchedOffItEndsWhatHadBegun) {
  SmallTraining first(with(kPartial, {"train.steps=2", "checkpoint.every=2"}));
  ASSERT_TRUE(first.run());
  ASSERT_THAT(first.state->carried, SizeIs(Gt(0u)));
  SmallTraining second({"train.steps=4"});
  resume(*second.state, first.recorder->directory() / "checkpoints/step-000002");
  ASSERT_TRUE(second.run());
  EXPECT_EQ(dump_of(second, 3).size(), (first.state->carried.size() + 3) * kGroup);
  EXPECT_EQ(dump_of(second, 4).size(), 3 * kGroup);
  EXPECT_THAT(second.state->carried, IsEmpty());
}

// What a step that failed had sampled is forgotten: the checkpoint is the one before it.
TEST(Partial, AStepThatFailsLeavesTheCarriedOnesAsTheyWere) {
  const Settings settings = with(kPartial, {"train.steps=6", "checkpoint.every=1"});
  SmallTraining whole(settings);
  ASSERT_TRUE(whole.run());
  SmallTraining broken(with(settings, {"checkpoint.every=0"}));
  BreakingGrader grader(25);
  EXPECT_THAT(error_of([&] { broken.run_with(grader, {1}); }), HasSubstr("is broken"));
  const NewestCheckpoint newest = find_newest_whole(broken.recorder->directory() / "checkpoints");
  ASSERT_TRUE(newest.found);
  SmallTraining again(settings);
  resume(*again.state, newest.found->path);
  ASSERT_TRUE(again.run());
  EXPECT_TRUE(weight_bytes(again.state->model) == weight_bytes(whole.state->model));
}

TEST(Partial, WhatDoesNotFitTheRunIsRefused) {
  SmallTraining first(with(kPartial, {"train.steps=2", "checkpoint.every=2"}));
  ASSERT_TRUE(first.run());
  const auto refused = [&](const std::string& setting,
                           const std::function<void(TrainState&)>& change = {}) {
    SmallTraining second({"train.steps=4", setting});
    resume(*second.state, first.recorder->directory() / "checkpoints/step-000002");
    if (change) change(*second.state);
    return error_of([&] { second.run(); });
  };
  EXPECT_THAT(refused("rollout.group_size=3"),
              AllOf(HasSubstr("are groups of 4"), HasSubstr("rollout.group_size")));
  EXPECT_THAT(refused("rollout.max_sequence_tokens=17"),
              AllOf(HasSubstr("too long"), HasSubstr("rollout.max_sequence_tokens")));
  EXPECT_THAT(
      refused("train.seed=0", [](TrainState& state) { state.carried[0].responses[0].ids[0] = 20; }),
      HasSubstr("does not know"));
  EXPECT_THAT(
      refused("train.seed=0", [](TrainState& state) { state.carried[0].prompt.number = 6; }),
      HasSubstr("unknown problems"));
  EXPECT_THAT(refused("train.seed=0",
                      [](TrainState& state) {
                        for (Response& response : state.carried[0].responses)
                          response.finish = FinishReason::kStop;
                      }),
              HasSubstr("have ended"));
}

}  // namespace
}  // namespace antisd::inline trainer
