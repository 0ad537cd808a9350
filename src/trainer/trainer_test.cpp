#include "trainer/trainer.h"

#include <atomic>
#include <cmath>

#include <gmock/gmock.h>

#include "inference/scorer.h"
#include "run/checkpoint/checkpoint.h"
#include "trainer/testing.h"

namespace antisd::inline trainer {
namespace {

using ::testing::Contains;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;
using testing::SmallTraining;

// As stop ids: no response is truncated.
const std::vector<TokenId> kEveryId = {1, 2, 3, 4, 5, 6, 7, 8};

double mean_reward(const std::vector<Json>& rows, std::size_t first, std::size_t count) {
  double sum = 0;
  for (std::size_t i = first; i < first + count; ++i)
    sum += rows[i]["critic/rewards/mean"].get<double>();
  return sum / static_cast<double>(count);
}

// A bandit with a few words: "win", then the end.
class LearnsTheWord : public ::testing::TestWithParam<const char*> {};

TEST_P(LearnsTheWord, WithinAFewSteps) {
  SmallTraining training({fmt::format("method.name={}", GetParam()), "train.steps=40",
                          "rollout.prompts_per_step=6", "rollout.group_size=8", "optim.lr=0.01",
                          "method.lambda_max=0.1", "record.rollouts_every=0"});
  EXPECT_TRUE(training.run());
  const std::vector<Json> rows = training.rows("metrics.jsonl");
  ASSERT_THAT(rows, SizeIs(40));
  EXPECT_LT(mean_reward(rows, 0, 3), 0.45);
  EXPECT_GT(mean_reward(rows, 35, 5), 0.85);
}

INSTANTIATE_TEST_SUITE_P(Methods, LearnsTheWord,
                         ::testing::Values("grpo", "sd", "antisd", "antisd-reverse-kl",
                                           "antisd-no-gate", "antisd-close-0.90",
                                           "antisd-close-0.95", "antisd-multiplicative",
                                           "antisd-student-gate", "antisd-no-teacher",
                                           "antisd-two-sided"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

class PresetLearnsTheWord : public ::testing::TestWithParam<const char*> {};

TEST_P(PresetLearnsTheWord, WithinAFewSteps) {
  SmallTraining training({fmt::format("method.preset={}", GetParam()), "train.steps=40",
                          "rollout.prompts_per_step=6", "rollout.group_size=8", "optim.lr=0.01",
                          "rollout.refill=1", "record.rollouts_every=0"});
  EXPECT_TRUE(training.run());
  EXPECT_GT(mean_reward(training.rows("metrics.jsonl"), 35, 5), 0.85);
}

INSTANTIATE_TEST_SUITE_P(Presets, PresetLearnsTheWord,
                         ::testing::Values("dapo", "dr-grpo", "gspo", "cispo", "rloo"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

// From the dump only, with separate formulas: group advantages, u, phi, A - lambda phi(u).
TEST(Trainer, TheRolloutDumpRecomputesEveryAdvantage) {
  SmallTraining training({"train.steps=4"});
  training.grader.fails = true;
  ASSERT_TRUE(training.run());
  int with_term = 0, failed = 0, peers = 0;
  for (int step = 1; step <= 4; ++step) {
    const std::vector<Json> rows = training.rows(fmt::format("rollouts/step-{:06}.jsonl", step));
    ASSERT_THAT(rows, SizeIs(12));
    for (std::size_t group = 0; group < 3; ++group) {
      double sum = 0, squares = 0, n = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        const Json& reward = rows[4 * group + i]["reward"];
        if (reward.is_null()) continue;
        sum += reward.get<double>();
        squares += reward.get<double>() * reward.get<double>();
        ++n;
      }
      const double mean = sum / n;
      const double deviation =
          n < 2 ? 0 : std::sqrt(std::max(0.0, (squares - n * mean * mean) / (n - 1)));
      for (std::size_t i = 0; i < 4; ++i) {
        const Json& row = rows[4 * group + i];
        EXPECT_EQ(row["step"], step);
        EXPECT_EQ(row["sample"], i);
        if (row["reward"].is_null()) {
          ++failed;
          EXPECT_TRUE(row["group_advantage"].is_null() && row["token_advantage"].is_null() &&
                      row["teacher_logp"].is_null());
          EXPECT_EQ(row["context_source"], "none");
          continue;
        }
        const double expected =
            deviation == 0 ? 0 : (row["reward"].get<double>() - mean) / (deviation + 1e-6);
        EXPECT_NEAR(row["group_advantage"].get<double>(), expected, 1e-9);
        const double lambda = row["lambda"].get<double>();
        EXPECT_EQ(lambda, step <= 2 ? 0 : lambda);  // the gate's warm-up
        with_term += lambda > 0;
        peers += row["context_source"] == "peer";
        ASSERT_EQ(row["token_advantage"].size(), row["response_ids"].size());
        ASSERT_EQ(row["student_entropy"].size(), row["response_ids"].size());
        for (std::size_t k = 0; k < row["response_ids"].size(); ++k) {
          const double u =
              row["teacher_logp"][k].get<double>() - row["student_logp"][k].get<double>();
          const double phi = (std::log1p(std::exp(u)) - std::log(2.0)) / 2;
          EXPECT_NEAR(row["token_advantage"][k].get<double>(), expected - lambda * phi, 1e-5);
        }
      }
    }
  }
  EXPECT_GT(with_term, 0);
  EXPECT_GT(failed, 0);
  EXPECT_GT(peers, 0);
}

// The first step uses the weights of the model directory, so scoring again must agree.
TEST(Trainer, TheDumpsScoresAreThoseOfItsIds) {
  SmallTraining training({"train.steps=1", "rollout.temperature=0.8"});
  ASSERT_TRUE(training.run());
  const CausalLm model = load_model(training.folder / "model", at::kCPU, at::kFloat);
  for (const Json& row : training.rows("rollouts/step-000001.jsonl")) {
    const auto response = row["response_ids"].get<std::vector<TokenId>>();
    const std::vector<ScoreRequest> requests = {
        {row["prompt_ids"].get<std::vector<TokenId>>(), response},
        {row["teacher_prompt_ids"].get<std::vector<TokenId>>(), response}};
    const std::vector<TokenScores> scores =
        score(model, requests, {.temperature = 0.8, .pack = {}});
    for (std::size_t k = 0; k < response.size(); ++k) {
      EXPECT_NEAR(row["student_logp"][k].get<double>(), scores[0].logp[k], 1e-5);
      EXPECT_NEAR(row["sampling_logp"][k].get<double>(), scores[0].logp[k], 1e-5);
      EXPECT_NEAR(row["teacher_logp"][k].get<double>(), scores[1].logp[k], 1e-5);
      EXPECT_NEAR(row["teacher_entropy"][k].get<double>(), scores[1].entropy[k], 1e-5);
    }
    const bool says_win = row["text"].get<std::string>().find("win") != std::string::npos;
    EXPECT_EQ(row["reward"], says_win && !row["truncated"].get<bool>() ? 1.0 : 0.0);
    // The verdict on the response itself is in its teacher's prompt.
    const std::string prompt = training.renderer->tokenizer().decode(
        row["teacher_prompt_ids"].get<std::vector<TokenId>>());
    EXPECT_THAT(prompt,
                HasSubstr(row["reward"] == 1.0 ? "Assessment correct" : "Assessment incorrect"));
    EXPECT_THAT(prompt, HasSubstr("win"));  // in every solution and answer
  }
}

TEST(Trainer, MetricsHaveTheNamesPeopleKnow) {
  SmallTraining training({"train.steps=3", "loss.kl_coef=0.01"});
  training.reference = load_model(training.folder / "model", at::kCPU, at::kFloat);
  ASSERT_TRUE(training.run());
  const std::vector<Json> rows = training.rows("metrics.jsonl");
  ASSERT_THAT(rows, SizeIs(3));
  for (const char* name : {"training/global_step",
                           "time",
                           "training/epoch",
                           "critic/rewards/mean",
                           "critic/rewards/max",
                           "critic/rewards/min",
                           "critic/advantages/mean",
                           "critic/advantages/max",
                           "critic/advantages/min",
                           "actor/pg_loss",
                           "actor/entropy",
                           "actor/pg_clipfrac",
                           "actor/ppo_kl",
                           "actor/grad_norm",
                           "actor/lr",
                           "actor/kl_loss",
                           "response_length/mean",
                           "response_length/max",
                           "response_length/min",
                           "prompt_length/mean",
                           "prompt_length/min",
                           "response_length/clip_ratio",
                           "prompt_length/max",
                           "timing_s/gen",
                           "timing_s/reward",
                           "timing_s/score",
                           "timing_s/adv",
                           "timing_s/update_actor",
                           "timing_s/save",
                           "timing_s/step",
                           "perf/total_num_tokens",
                           "perf/time_per_step",
                           "perf/throughput",
                           "perf/max_memory_allocated_gb",
                           "training/rollout_probs_diff_mean",
                           "training/rollout_probs_diff_max",
                           "antisd/lambda",
                           "antisd/gate",
                           "antisd/gate_signal",
                           "antisd/u/mean",
                           "antisd/h_warm",
                           "antisd/tau",
                           "antisd/u/std",
                           "antisd/u/min",
                           "antisd/u/max",
                           "antisd/u/frac_neg",
                           "antisd/phi/mean",
                           "antisd/term_ratio",
                           "teacher/entropy_mean",
                           "teacher/entropy_median",
                           "teacher/ppl",
                           "context/peer_fraction",
                           "context/dataset_fraction",
                           "context/answer_fraction",
                           "reward/non_truncated",
                           "reward/grader_failed",
                           "group/all_right_fraction",
                           "group/all_wrong_fraction"}) {
    ASSERT_TRUE(rows[2].contains(name)) << name;
    EXPECT_TRUE(rows[2][name].is_number()) << name;
  }
  EXPECT_FALSE(rows[2].contains("perf/mfu"));  // the peak of a CPU is unknown
  // The standard deviation of u covers exactly the warm-up.
  std::int64_t tokens = 0;
  for (const char* file : {"rollouts/step-000001.jsonl", "rollouts/step-000002.jsonl"})
    for (const Json& row : training.rows(file))
      tokens += std::ssize(row["response_ids"]);
  EXPECT_EQ(training.state->warmup_u.count, tokens);
  EXPECT_LT(rows[2]["training/rollout_probs_diff_max"].get<double>(), 1e-5);
  // The policy still equals the reference, up to the rounding of two ways to compute it.
  EXPECT_NEAR(rows[0]["actor/kl_loss"].get<double>(), 0, 1e-10);
  EXPECT_GT(rows[2]["actor/kl_loss"].get<double>(), 0);
  EXPECT_EQ(rows[0]["antisd/lambda"], 0);
  EXPECT_TRUE(rows[1]["antisd/h_warm"].is_null());
  EXPECT_TRUE(rows[2]["antisd/h_warm"].is_number());
}

// A whole run on a CPU, with experts too: what the backward pass recomputes changes no bit.
TEST(Trainer, RecomputedLayersChangeNothing) {
  for (const testing::SmallModel kind :
       {testing::SmallModel::kDense, testing::SmallModel::kExperts}) {
    const auto weights = [&](const char* recompute) {
      const auto processes = alone();
      SmallTraining training(
          {"train.steps=3", fmt::format("model.gradient_checkpointing={}", recompute)}, *processes,
          {}, kind);
      EXPECT_TRUE(training.run());
      return testing::weight_bytes(training.state->model);
    };
    EXPECT_EQ(weights("true"), weights("false"));
  }
}

TEST(Trainer, AStepWithoutGradesIsSkippedCountedAndSaid) {
  SmallTraining training({"train.steps=2", "method.name=grpo"});
  struct Never : Grader {
    Verdict grade(const GradeRequest&) override { return {std::nullopt, "no idea"}; }
  } never;
  const std::string before = testing::weight_bytes(training.state->model);
  // Truncated responses are wrong without a grader: avoid them.
  training.config.options().assign("rollout.max_sequence_tokens=128");
  EXPECT_TRUE(training.run_with(never, kEveryId));
  EXPECT_EQ(testing::weight_bytes(training.state->model), before);
  const std::vector<Json> rows = training.rows("metrics.jsonl");
  EXPECT_EQ(rows[1]["training/skipped_steps"], 2);
  EXPECT_EQ(rows[1]["reward/grader_failed"], 12);
  EXPECT_TRUE(rows[1]["critic/rewards/mean"].is_null());
  EXPECT_THAT(read_file(training.recorder->directory() / "log.txt"),
              AllOf(HasSubstr("no idea (12)"), HasSubstr("nothing was learnt")));
}

// Grades only in the third step, and the same number of responses in each.
struct SeldomGrader : Grader {
  Verdict grade(const GradeRequest&) override {
    const int step = 1 + calls++ / 12;
    return step == 3 ? Verdict{.reward = 0.0, .reason = ""}
                     : Verdict{.reward = std::nullopt, .reason = "no idea"};
  }
  std::atomic<int> calls = 0;
};

TEST(Trainer, GivesUpAfterStepsInARowWithoutAGrade) {
  SmallTraining training({"train.steps=20", "method.name=grpo", "reward.give_up_after=3"});
  training.config.options().assign("rollout.max_sequence_tokens=128");
  SeldomGrader seldom;
  const std::string error = testing::error_of([&] { training.run_with(seldom, kEveryId); });
  EXPECT_THAT(error, AllOf(HasSubstr("step 6: reward.kind = \"countdown\""),
                           HasSubstr("3 consecutive steps"), HasSubstr("no idea"),
                           HasSubstr("reward.give_up_after")));
  EXPECT_EQ(training.rows("metrics.jsonl").size(), 5u);
  EXPECT_TRUE(std::filesystem::exists(training.recorder->directory() / "checkpoints/step-000005"));
}

// It learns from the teacher's context, without an advantage.
TEST(Trainer, SdpoTrainsWithoutAnAdvantage) {
  SmallTraining training({"train.steps=3", "method.name=sdpo", "method.sdpo.top_k=5"});
  const std::string before = testing::weight_bytes(training.state->model);
  ASSERT_TRUE(training.run());
  EXPECT_NE(testing::weight_bytes(training.state->model), before);
  const std::vector<Json> rows = training.rows("metrics.jsonl");
  EXPECT_GT(rows[2]["actor/pg_loss"].get<double>(), 0);  // a divergence
  EXPECT_LT(rows[2]["training/rollout_probs_diff_max"].get<double>(), 1e-5);
  EXPECT_TRUE(training.rows("rollouts/step-000003.jsonl")[0]["token_advantage"].is_null());
}

// The teacher's weights computed from the student's of every step, and its scores.
TEST(Trainer, ASlowTeacherFollowsTheWeights) {
  constexpr double kRate = 0.25;
  SmallTraining training({"train.steps=4", "method.name=sdpo", "method.sdpo.top_k=5",
                          "method.sdpo.teacher_ema=0.25", "checkpoint.every=1", "checkpoint.keep=9",
                          "optim.lr=0.03"});
  ASSERT_TRUE(training.run());
  const std::filesystem::path folder = training.recorder->directory() / "checkpoints";
  const auto saved = [&](int step, const char* part) {
    return load_model(folder / fmt::format("step-{:06}", step) / part, at::kCPU, at::kFloat);
  };
  const auto flat = [](const CausalLm& model) {
    std::vector<at::Tensor> parts;
    for (const Parameter& parameter : model.parameters())
      parts.push_back(parameter.value.detach().to(at::kDouble).flatten());
    return at::cat(parts);
  };
  const at::Tensor first = flat(load_model(training.folder / "model", at::kCPU, at::kFloat));
  at::Tensor average = first;
  for (int step = 1; step <= 4; ++step) {
    average = (1 - kRate) * average + kRate * flat(saved(step, "model"));
    EXPECT_LE((flat(saved(step, "teacher")) - average).norm().item<double>(),
              1e-5 * (average - first).norm().item<double>());
  }
  // The teacher of step 3 is the average after step 2.
  const auto gap = [&](const CausalLm& model) {
    double worst = 0;
    for (const Json& row : training.rows("rollouts/step-000003.jsonl")) {
      const std::vector<ScoreRequest> request = {
          {row["teacher_prompt_ids"].get<std::vector<TokenId>>(),
           row["response_ids"].get<std::vector<TokenId>>()}};
      const TokenScores scores = score(model, request)[0];
      const auto dumped = row["teacher_logp"].get<std::vector<float>>();
      for (std::size_t i = 0; i < dumped.size(); ++i)
        worst = std::max(worst, static_cast<double>(std::abs(dumped[i] - scores.logp[i])));
    }
    return worst;
  };
  EXPECT_LT(gap(saved(2, "teacher")), 1e-5);
  EXPECT_GT(gap(saved(2, "model")), 1e-3);
}

TEST(Trainer, AStopFinishesTheStepAndSaves) {
  SmallTraining training({"train.steps=50"});
  int asked = 0;
  EXPECT_FALSE(training.run([&] { return ++asked > 3; }));
  EXPECT_EQ(training.state->step, 3);
  const NewestCheckpoint newest = find_newest_whole(training.recorder->directory() / "checkpoints");
  ASSERT_TRUE(newest.found);
  EXPECT_EQ(newest.found->step, 3);
  EXPECT_THAT(training.rows("metrics.jsonl"), SizeIs(3));
}

TEST(Trainer, KeepsTheBestCheckpoint) {
  SmallTraining training({"train.steps=6", "checkpoint.every=1", "checkpoint.keep=1",
                          "checkpoint.keep_best=training/skipped_steps"});
  // A metric that never increases: the first checkpoint stays the best.
  ASSERT_TRUE(training.run());
  const std::filesystem::path folder = training.recorder->directory() / "checkpoints";
  EXPECT_TRUE(std::filesystem::exists(folder / "step-000001"));
  EXPECT_TRUE(std::filesystem::exists(folder / "step-000006"));
  // No step has shown yet that 6 is good; one has for 5.
  EXPECT_TRUE(std::filesystem::exists(folder / "step-000005"));
  EXPECT_FALSE(std::filesystem::exists(folder / "step-000004"));
}

TEST(Trainer, GoesOnWhereACheckpointCannotBeWrittenButNotBeyondTheLast) {
  SmallTraining training({"train.steps=2", "checkpoint.every=1"});
  write_file_atomically(training.recorder->directory() / "checkpoints", "a file in the way");
  EXPECT_THAT(
      error_of([&] { training.run(); }),
      AllOf(HasSubstr("step 2 was not saved: "), HasSubstr("checkpoints: cannot be written"),
            HasSubstr("there is no earlier checkpoint")));
  EXPECT_THAT(training.rows("metrics.jsonl"), SizeIs(2));
  EXPECT_THAT(read_file(training.recorder->directory() / "log.txt"),
              HasSubstr("STEP 1 WAS NOT SAVED"));
}

// A learning rate that is far too high: the weights of step 3 are finite, their results are not.
TEST(Trainer, WeightsThatExplodeCostNoGoodCheckpoint) {
  SmallTraining training({"train.steps=3", "checkpoint.every=1", "checkpoint.keep=1"});
  ASSERT_TRUE(training.run());
  const std::filesystem::path folder = training.recorder->directory() / "checkpoints";
  EXPECT_TRUE(std::filesystem::exists(folder / "step-000003"));
  training.config.options().assign("train.steps=9");
  training.config.options().assign("optim.lr=1e30");
  const std::string message = error_of([&] { training.run(); });
  EXPECT_THAT(
      message,
      AllOf(HasSubstr("step 5: "), HasSubstr("not finite"), HasSubstr("learning rate 1e+30"),
            HasSubstr("last good checkpoint is " + (folder / "step-000003").string()),
            HasSubstr("remove " + (folder / "step-000004").string()),
            HasSubstr("--resume and a lower optim.lr")));
  ASSERT_TRUE(std::filesystem::exists(folder / "step-000003"));
  const CausalLm good = load_model(folder / "step-000003/model", at::kCPU, at::kFloat);
  for (const Parameter& parameter : good.parameters())
    EXPECT_LT(parameter.value.abs().max().item<float>(), 1e3) << parameter.name();
  EXPECT_FALSE(std::filesystem::exists(folder / "step-000005"));
}

// Without a checkpoint in between, nothing is saved after the divergence.
TEST(Trainer, NothingIsSavedAfterAStepThatIsNotFinite) {
  SmallTraining training({"train.steps=3", "checkpoint.every=0", "optim.lr=1e30"});
  EXPECT_THAT(error_of([&] { training.run(); }),
              AllOf(HasSubstr("step 2: "), HasSubstr("there is no good checkpoint")));
  EXPECT_FALSE(find_newest_whole(training.recorder->directory() / "checkpoints").found);
}

// An infinite moment, as after an overflow: the step was finite, its state is not.
TEST(Trainer, AStateThatIsNotFiniteEndsTheRunUnsaved) {
  SmallTraining training({"train.steps=4", "checkpoint.every=2", "checkpoint.keep=1"});
  int asked = 0;
  const std::string message = error_of([&] {
    training.run([&] {
      if (++asked == 4)
        training.state->model.parameters().at("embedding").second_moment.fill_(INFINITY);
      return false;
    });
  });
  const std::filesystem::path folder = training.recorder->directory() / "checkpoints";
  EXPECT_THAT(message,
              AllOf(HasSubstr("step 4: the second moment of"), HasSubstr("NaN or infinity"),
                    HasSubstr("last good checkpoint is " + (folder / "step-000002").string())));
  EXPECT_EQ(find_newest_whole(folder).found->step, 2);
}

TEST(Trainer, ANumberThatIsNoneNamesAndKeepsTheResponse) {
  SmallTraining training({"train.steps=1", "method.name=grpo"});
  // The sampler would reject NaN at once, and a weight that overflows only in the update is rare,
  // so the reference is broken instead.
  training.config.options().assign("loss.kl_coef=1");
  training.reference = load_model(training.folder / "model", at::kCPU, at::kFloat);
  const at::NoGradGuard no_grad;
  training.reference->parameters().at("embedding").value.fill_(NAN);
  const std::string before = testing::weight_bytes(training.state->model);
  const at::AutoGradMode gradients(true);
  const std::string message = error_of([&] { training.run(); });
  EXPECT_THAT(message, AllOf(HasSubstr("step 1: the loss is not finite"), HasSubstr("problem 'p"),
                             HasSubstr("sample 0"), HasSubstr("failed/step-000001.jsonl")));
  EXPECT_EQ(testing::weight_bytes(training.state->model), before);
  const std::vector<Json> rows = training.rows("failed/step-000001.jsonl");
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0]["failure"], "the loss is not finite");
  EXPECT_FALSE(rows[0]["response_ids"].empty());
}

TEST(Trainer, ARewardThatIsNoneNamesAndKeepsTheResponse) {
  SmallTraining training({"train.steps=3", "method.name=grpo", "rollout.max_sequence_tokens=128"});
  struct Broken : Grader {
    Verdict grade(const GradeRequest& request) override {
      return {++asked > 20 ? NAN : double(request.response.size() % 2), ""};
    }
    std::atomic<int> asked = 0;
  } broken;
  const std::string message = error_of([&] { training.run_with(broken, kEveryId); });
  EXPECT_THAT(message, AllOf(HasSubstr("step 2: a reward is nan"), HasSubstr("problem 'p"),
                             HasSubstr("sample "), HasSubstr("failed/step-000002.jsonl")));
  const std::vector<Json> rows = training.rows("failed/step-000002.jsonl");
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_FALSE(rows[0]["response_ids"].empty());
  // Step 1 is saved, without any part of step 2.
  EXPECT_EQ(training.state->step, 1);
  EXPECT_EQ(training.state->prompts.state()["position"], 3);
  const CausalLm saved = load_model(
      training.recorder->directory() / "checkpoints/step-000001/model", at::kCPU, at::kFloat);
  EXPECT_EQ(testing::weight_bytes(saved), testing::weight_bytes(training.state->model));
}

// On policy the loss of a token is -A: the reference's term is a separate metric.
TEST(Trainer, ThePolicysLossIsWithoutTheReferences) {
  SmallTraining training({"train.steps=3", "method.name=grpo", "loss.kl_coef=2"});
  training.reference = load_model(training.folder / "model", at::kCPU, at::kFloat);
  ASSERT_TRUE(training.run());
  const Json row = training.rows("metrics.jsonl")[2];
  EXPECT_GT(row["actor/kl_loss"].get<double>(), 1e-5);
  EXPECT_NEAR(row["actor/pg_loss"].get<double>(), -row["critic/advantages/mean"].get<double>(),
              1e-12);
}

TEST(Trainer, RefusesWhatItCannotTrain) {
  EXPECT_THAT(error_of([] { SmallTraining({"rollout.group_size=1"}); }), HasSubstr("group_size"));
}

TEST(TrainState, SurvivesItsJson) {
  GateState gate{.position = GatePosition::kClosedHigh,
                 .steps = 7,
                 .warmup = {0.1, 0.1 + 0.2},
                 .warmup_means = {0.3, 0.7 / 3},
                 .h_warm = 1.0 / 3,
                 .too_small = true,
                 .previous = {},
                 .signal = "mean entropy"};
  Json saved = Json::parse(to_json(gate).dump());
  EXPECT_EQ(gate_state_from(saved), gate);
  EXPECT_EQ(saved["statistic"], "mean");
  // Checkpoints from before statistic = auto do not have these.
  for (const char* key : {"statistic", "warmup_means", "too_small"})
    saved.erase(key);
  gate.warmup_means.clear();
  gate.too_small = false;
  EXPECT_EQ(gate_state_from(saved), gate);
  gate.signal = "auto entropy";
  EXPECT_TRUE(to_json(gate)["statistic"].is_null());
  Moments some;
  some.add(-0.1);
  some.add(1.0 / 3);
  const Moments back = moments_from(Json::parse(to_json(some).dump()));
  EXPECT_EQ(std::tie(back.count, back.sum, back.sum_squares, back.min, back.max, back.negative),
            std::tie(some.count, some.sum, some.sum_squares, some.min, some.max, some.negative));
  Moments none = moments_from(Json::parse(to_json(Moments()).dump()));
  none.add(2);
  EXPECT_EQ(none.min, 2);
  EXPECT_THAT(error_of([] { gate_state_from(Json::parse(R"({"position":"ajar"})")); }),
              HasSubstr("ajar"));
  EXPECT_THAT(error_of([] { moments_from(Json::parse("[]")); }), HasSubstr("not one of ours"));
}

}  // namespace
}  // namespace antisd::inline trainer
