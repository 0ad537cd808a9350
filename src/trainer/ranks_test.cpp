// Training on several ranks, as threads, against one process: the same bits.
#include <gmock/gmock.h>

#include "run/checkpoint/checkpoint.h"
#include "trainer/ranks_testing.h"

namespace antisd::inline trainer {
namespace {

using testing::BreakingGrader;
using testing::expect_same;
using ::testing::HasSubstr;
using testing::Settings;
using ::testing::SizeIs;
using testing::SmallModel;
using testing::SmallTraining;
using testing::train_alone;
using testing::train_on;
using testing::TrainingOutcome;
using testing::weight_bytes;
using testing::with;

constexpr ShardOptions kWeights3 = {.members = 3, .gradients = true, .weights = true};

class RanksOfMethod : public ::testing::TestWithParam<const char*> {};

TEST_P(RanksOfMethod, ThreeGiveTheBitsOfOne) {
  const Settings settings = {fmt::format("method.name={}", GetParam()), "train.steps=4",
                             "train.micro_batches=3", "checkpoint.every=2"};
  const TrainingOutcome expected = train_alone(settings);
  ASSERT_THAT(expected.metrics, SizeIs(4));
  expect_same(train_on(3, settings), expected);
  expect_same(train_on(3, settings, {.members = 3, .gradients = true}), expected);
  expect_same(train_on(3, settings, kWeights3), expected);
}

INSTANTIATE_TEST_SUITE_P(Methods, RanksOfMethod,
                         ::testing::Values("grpo", "sd", "opd", "antisd", "sdpo",
                                           "antisd-reverse-kl", "antisd-no-gate",
                                           "antisd-close-0.90", "antisd-close-0.95",
                                           "antisd-multiplicative", "antisd-student-gate",
                                           "antisd-no-teacher", "antisd-two-sided"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

// Fewer prompts than ranks, fewer micro-batches than ranks, and grades that fail.
TEST(Ranks, SomeMayHaveNothingToDo) {
  const Settings settings = {"train.steps=3", "rollout.prompts_per_step=2", "rollout.group_size=3",
                             "train.micro_batches=2"};
  expect_same(train_on(4, settings), train_alone(settings));
  expect_same(train_on(4, settings, {.members = 2}), train_alone(settings));
  expect_same(train_on(4, settings, {.members = 2, .gradients = true, .weights = true}),
              train_alone(settings));
  expect_same(train_on(4, settings, {.members = 4, .gradients = true, .weights = true}),
              train_alone(settings));
}

// Models that are not divided beside one that is.
// Weights that are never whole: sampling, scoring, saving and loading fetch layer by layer.
TEST(Ranks, MayKeepTheWeightsDivided) {
  const ShardOptions always = {
      .members = 3, .gradients = true, .weights = true, .whole_between = false};
  for (const Settings& more :
       {Settings{"method.name=antisd"}, Settings{"method.name=sdpo", "loss.kl_coef=0.1"},
        Settings{"method.name=sdpo", "method.sdpo.teacher_ema=0.2", "train.minibatches=2"},
        Settings{"method.name=grpo", "rollout.prompts_per_step=2"}}) {
    const Settings settings =
        with({"train.steps=3", "train.micro_batches=3", "checkpoint.every=2"}, more);
    expect_same(train_on(3, settings, always), train_alone(settings));
  }
}

TEST(Ranks, DivideThePolicyBesideAReferenceAndASlowTeacher) {
  const Settings settings = {"train.steps=3", "train.micro_batches=3", "checkpoint.every=2"};
  for (const Settings& more :
       {Settings{"loss.kl_coef=0.1"},
        Settings{"method.name=sdpo", "method.sdpo.teacher_ema=0.2", "train.minibatches=2"}}) {
    const Settings own = with(settings, more);
    expect_same(train_on(3, own, kWeights3), train_alone(own));
  }
}

// The rows of a decode step are not as independent in the last bit as those of a dense model, so
// the samples are compared with those of as many ranks.
TEST(Ranks, DivideALayerOfExperts) {
  const Settings settings = {"train.steps=3", "train.micro_batches=3", "checkpoint.every=2"};
  expect_same(train_on(3, settings, kWeights3, SmallModel::kExperts),
              train_on(3, settings, {}, SmallModel::kExperts));
}

TEST(Ranks, MiniBatchesAndEpochsAreCutAlike) {
  const Settings settings = {"train.steps=3", "train.minibatches=3", "train.epochs=2",
                             "train.micro_batches=2"};
  for (const char* method : {"antisd", "sdpo"}) {
    const Settings own = with(settings, {fmt::format("method.name={}", method)});
    const TrainingOutcome expected = train_alone(own);
    expect_same(train_on(2, own, {.members = 2}), expected);
    expect_same(train_on(2, own, {.members = 2, .gradients = true, .weights = true}), expected);
  }
}

// Without the key a mini-batch is cut into one micro-batch per rank: another rounding of the
// gradient, and nothing else in the first step.
TEST(Ranks, TheFirstStepIsThatOfOneProcessHoweverItIsCut) {
  const Settings settings = {"train.steps=1"};
  TrainingOutcome expected = train_alone(settings), found = train_on(3, settings);
  ASSERT_THAT(found.metrics, SizeIs(1));
  const double norm = expected.metrics[0]["actor/grad_norm"].get<double>();
  EXPECT_NEAR(found.metrics[0]["actor/grad_norm"].get<double>(), norm, 1e-5 * norm);
  for (TrainingOutcome* outcome : {&expected, &found})
    outcome->metrics[0].erase("actor/grad_norm");
  EXPECT_EQ(found.metrics, expected.metrics);
  EXPECT_EQ(found.rollouts, expected.rollouts);
}

// The same for later steps, each begun by the ranks where one process left the step before: the
// responses are the same, and the update differs by the rounding of another cut.
TEST(Ranks, EveryStepIsThatOfOneProcessUpToRounding) {
  const Settings settings = {"train.steps=5", "checkpoint.every=1", "checkpoint.keep=9",
                             "optim.schedule=constant"};
  SmallTraining alone(settings);
  ASSERT_TRUE(alone.run());
  const std::vector<Json> rows = alone.rows("metrics.jsonl");
  const auto checkpoint = [&](std::int64_t step) {
    return alone.recorder->directory() / "checkpoints" / fmt::format("step-{:06}", step);
  };
  for (std::int64_t step = 1; step < 5; ++step) {
    const CausalLm expected = load_model(checkpoint(step + 1) / "model", at::kCPU, at::kFloat);
    run_ranks(3, [&](Communicator& ranks) {
      SmallTraining next(with(settings, {fmt::format("train.steps={}", step + 1)}), ranks,
                         {.members = 3});
      resume(*next.state, checkpoint(step));
      EXPECT_TRUE(next.run());
      for (const Parameter& parameter : next.state->model.parameters()) {
        const at::Tensor& value = expected.parameters().at(parameter.name()).value;
        EXPECT_LE((parameter.value - value).norm().item<double>(),
                  1e-5 * value.norm().item<double>())
            << parameter.name() << " after step " << step + 1;
      }
      if (ranks.rank() != 0) return;
      const Json row = next.rows("metrics.jsonl").back();
      const Json& other = rows[static_cast<std::size_t>(step)];
      for (const char* name : {"training/global_step", "actor/pg_loss", "critic/rewards/mean"})
        EXPECT_NEAR(row.at(name).get<double>(), other.at(name).get<double>(), 1e-6) << name;
    });
  }
}

// Saved by three ranks that divide the optimizer, continued by one, by two and by three.
TEST(Ranks, ARunGoesOnWithAnotherNumberOfThem) {
  const Settings all = {"train.steps=4", "train.micro_batches=3", "checkpoint.every=2",
                        "optim.schedule=constant"};
  const TrainingOutcome expected = train_alone(all);
  const testing::TemporaryFolder kept;
  run_ranks(3, [&](Communicator& ranks) {
    SmallTraining half(with(all, {"train.steps=2"}), ranks, {.members = 3});
    EXPECT_TRUE(half.run());
    if (ranks.rank() != 0) return;
    std::filesystem::copy(half.recorder->directory() / "checkpoints" / "step-000002",
                          kept / "step-000002", std::filesystem::copy_options::recursive);
  });
  for (const int size : {1, 2, 3}) {
    run_ranks(size, [&](Communicator& ranks) {
      SmallTraining rest(all, ranks,
                         {.members = size,
                          .gradients = size == 3,
                          .weights = size == 3,
                          .whole_between = size != 3});
      resume(*rest.state, kept / "step-000002");
      EXPECT_TRUE(rest.run());
      rest.state->optimizer.make_whole();
      EXPECT_TRUE(weight_bytes(rest.state->model) == expected.weights) << size;
    });
  }
}

TEST(Ranks, WhatFailsOnOneEndsAllWithTheStepsBeforeSaved) {
  std::vector<std::string> messages(3);
  std::vector<std::int64_t> steps(3);
  bool saved = false;
  run_ranks(3, [&](Communicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    SmallTraining training({"train.steps=9", "reward.workers=1"}, ranks, {.members = 3});
    BreakingGrader grader(rank == 1 ? 12 : 1000);
    try {
      training.run_with(grader, {1});
    } catch (const RunError& error) {
      messages[rank] = error.problem();
    }
    steps[rank] = training.state->step;
    if (rank == 0) {
      saved = find_newest_whole(training.recorder->directory() / "checkpoints").found->step ==
              training.state->step;
    }
  });
  EXPECT_EQ(messages[0], "rank 1: the grader is broken");
  EXPECT_EQ(messages[1], "the grader is broken");
  EXPECT_EQ(messages[2], "rank 1: the grader is broken");
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_EQ(steps[0], steps[2]);
  EXPECT_GT(steps[0], 0);
  EXPECT_TRUE(saved);
}

// In a backward pass the others wait for memory, not for a word: that rank ends, and tries no save
// that would need them.
TEST(Ranks, OneThatFailsInItsBackwardPassEndsAlone) {
  const auto train = [](Communicator& ranks) {
    SmallTraining training({"train.steps=3", "train.micro_batches=2"}, ranks, {.members = 2});
    const Parameter& parameter = training.state->model.parameters().at("layers.0.qkv");
    parameter.value.register_hook([&](const at::Tensor&) {
      if (ranks.rank() == 1 && training.state->step == 1) throw RunError("the device is lost");
    });
    training.run();
  };
  try {
    run_ranks(2, train);
    FAIL() << "it went on";
  } catch (const FailedAlone& error) {
    EXPECT_EQ(error.problem(), "the device is lost");
  }
}

TEST(Ranks, AStopOfOneIsAStopOfAll) {
  run_ranks(2, [&](Communicator& ranks) {
    SmallTraining training({"train.steps=9"}, ranks);
    EXPECT_FALSE(training.run([&] { return ranks.rank() == 1 && training.state->step == 2; }));
    EXPECT_EQ(training.state->step, 2);
  });
}

// Weights that one rank finds to be NaN end all, and nothing is saved.
TEST(Ranks, ANaNOnOneIsNamedOnAll) {
  for (const bool divided : {false, true}) {
    std::vector<std::string> messages(2);
    run_ranks(2, [&](Communicator& ranks) {
      SmallTraining training(
          {"train.steps=6", "checkpoint.every=1", "optim.lr=1e30", "optim.grad_clip=1e30"}, ranks,
          {.members = 2, .gradients = divided, .weights = divided});
      try {
        training.run();
      } catch (const RunError& error) {
        messages[static_cast<std::size_t>(ranks.rank())] = error.problem();
      }
    });
    for (const std::string& message : messages)
      EXPECT_THAT(message, HasSubstr("not finite"));
  }
}

// Weights that are finite, and a step whose gradient is not: the weights are whole again, and the
// step before is saved.
TEST(Ranks, AfterAFailedUpdateTheWeightsAreWhole) {
  const auto train = [](Communicator& ranks, ShardOptions shard) {
    SmallTraining training({"train.steps=4", "train.micro_batches=2"}, ranks, shard);
    const Parameter& parameter = training.state->model.parameters().at("layers.0.qkv");
    parameter.value.register_hook([&](const at::Tensor& gradient) {
      return training.state->step == 2 && ranks.rank() == 0 ? gradient * INFINITY : gradient;
    });
    EXPECT_THROW(training.run(), RunError);
    EXPECT_EQ(training.state->step, 2);
    return weight_bytes(training.state->model);
  };
  const std::string expected = train(one_rank(), {});
  run_ranks(2, [&](Communicator& ranks) {
    EXPECT_TRUE(train(ranks, {.members = 2, .gradients = true, .weights = true}) == expected);
  });
}

}  // namespace
}  // namespace antisd::inline trainer
