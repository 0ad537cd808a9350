// `train` as a user runs it: resuming, dry runs, continual training, errors.

#include <set>

#include <gmock/gmock.h>

#include "algo/method.h"
#include "cli/weights/train_testing.h"
#include "core/thread_pool.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Train : public testing::TrainTest {};
using testing::Outcome;

TEST_F(Train, ResumingChangesNotAByte) {
  ASSERT_EQ(train("whole").status, 0);
  ASSERT_EQ(train("parts", "train.steps=3").status, 0);
  const Outcome resumed = train("parts", "--resume");
  EXPECT_EQ(resumed.status, 0);
  EXPECT_THAT(resumed.err, HasSubstr("going on from"));
  EXPECT_EQ(weights("parts", 6), weights("whole", 6));
  EXPECT_EQ(reproducible("parts"), reproducible("whole"));
  ASSERT_THAT(reproducible("whole"), SizeIs(6));
  for (int step = 1; step <= 6; ++step) {
    const std::string name = fmt::format("rollouts/step-{:06}.jsonl", step);
    EXPECT_EQ(read_file(folder_ / "parts" / name), read_file(folder_ / "whole" / name));
  }
  // Then nothing is left to do, unless train.steps grows.
  EXPECT_THAT(train("parts", "--resume").err, HasSubstr("nothing is left to do"));
  EXPECT_EQ(train("parts", "--resume train.steps=7").status, 0);
  EXPECT_THAT(metrics("parts"), SizeIs(7));

  const Json run = Json::parse(read_file(folder_ / "parts" / "run.json"));
  EXPECT_EQ(run["exit_reason"], "finished");
  EXPECT_EQ(run["last_step"], 7);
  EXPECT_THAT(run["earlier"], SizeIs(3));
  EXPECT_THAT(run["command_line"].get<std::string>(), HasSubstr("--resume"));

  // Training with its own config.toml repeats the run.
  fs::copy_file(folder_ / "whole/config.toml", folder_ / "run.toml",
                fs::copy_options::overwrite_existing);
  ASSERT_EQ(train("again").status, 0);
  EXPECT_EQ(weights("again", 6), weights("whole", 6));
}

TEST_F(Train, ResumingASlowTeacherChangesNotAByte) {
  const std::string method = "method.name=sdpo method.sdpo.teacher_ema=0.2 loss.kl_coef=0.01 ";
  ASSERT_EQ(train("whole", method).status, 0);
  ASSERT_EQ(train("parts", method + "train.steps=3").status, 0);
  ASSERT_EQ(train("parts", method + "--resume").status, 0);
  EXPECT_EQ(weights("parts", 6), weights("whole", 6));
  const char* teacher = "checkpoints/step-000006/teacher/model.safetensors";
  EXPECT_EQ(read_file(folder_ / "parts" / teacher), read_file(folder_ / "whole" / teacher));
  EXPECT_EQ(reproducible("parts"), reproducible("whole"));
  EXPECT_GT(metrics("whole").back()["actor/kl_loss"].get<double>(), 0);

  ASSERT_EQ(train("none", "method.name=sdpo train.steps=1").status, 0);
  const Outcome changed = train("none", method + "--resume");
  EXPECT_EQ(changed.status, 2);
  EXPECT_THAT(changed.err, HasSubstr("teacher_ema"));
}

// A step with all the state that it can pass to the next.
TEST_F(Train, ResumingSeveralUpdatesAStepChangesNotAByte) {
  const std::string settings =
      "train.minibatches=2 train.epochs=2 train.micro_batch_tokens=48 loss.kl_coef=0.1 "
      "optim.schedule=cosine optim.warmup_steps=2 context.peer=group "
      "method.name=antisd-student-gate "
      "eval.n.default=2 eval.every=2 eval.max_sequence_tokens=20 checkpoint.every=2 "
      "checkpoint.keep_best=val-core/problems/acc/mean@2 "
      "eval.benches=" +
      (folder_ / "problems.jsonl").string() + " ";
  ASSERT_EQ(train("whole", settings).status, 0) << read_file(folder_ / "err");
  // The schedule depends on the last step, so the run is stopped, not shortened.
  const pid_t pid = start("parts", settings);
  wait_for_steps("parts", 2);
  kill(pid, SIGTERM);
  const int status = status_of(pid);
  EXPECT_TRUE(status == 130 || status == 0) << status;
  ASSERT_EQ(train("parts", settings + "--resume").status, 0);
  EXPECT_EQ(weights("parts", 6), weights("whole", 6));
  EXPECT_EQ(reproducible("parts"), reproducible("whole"));
  const Json last = metrics("whole").back();
  EXPECT_GT(last["actor/kl_loss"].get<double>(), 0);
  EXPECT_NE(last["actor/ppo_kl"].get<double>(), 0);
  EXPECT_TRUE(last.contains("val-core/problems/acc/mean@2"));
  EXPECT_EQ(read_file(folder_ / "parts/eval/step-000006/problems.jsonl"),
            read_file(folder_ / "whole/eval/step-000006/problems.jsonl"));
}

TEST_F(Train, AStepThatFailsLosesNothing) {
  const std::string warmup = "method.gate.warmup_steps=4 ";
  ASSERT_EQ(train("whole", warmup).status, 0);
  for (const char* run : {"run", "other"}) {
    const Outcome stopped =
        train(run, warmup + "method.gate.min_warm=50 method.gate.on_too_small=stop");
    EXPECT_EQ(stopped.status, 2);
    EXPECT_THAT(stopped.err, AllOf(HasSubstr("too small to gate on"), HasSubstr("saving step 3")));
  }
  // With another choice it continues as if nothing had happened,
  EXPECT_THAT(train("run", warmup + "--resume").err, HasSubstr("step-000003"));
  EXPECT_EQ(weights("run", 6), weights("whole", 6));
  EXPECT_EQ(reproducible("run"), reproducible("whole"));
  // and with another statistic the gate does not mix the two.
  const Outcome other = train("other", "method.gate.statistic=mean --resume");
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_THAT(other.err, HasSubstr("warm-up starts again"));
  const std::vector<Json> rows = metrics("other");
  ASSERT_THAT(rows, SizeIs(6));
  EXPECT_TRUE(rows[4]["antisd/h_warm"].is_null());  // two steps from the third on
  EXPECT_DOUBLE_EQ(
      rows[5]["antisd/h_warm"].get<double>(),
      (rows[3]["antisd/gate_signal"].get<double>() + rows[4]["antisd/gate_signal"].get<double>()) /
          2);
}

TEST_F(Train, AGateThatFindsNothingToMeasureStaysOpen) {
  const Outcome outcome = train("run", "method.gate.min_warm=50");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("warning: step 2: the median of the entropies was"),
                                 HasSubstr("too small to gate on. The gate stays open")));
  const std::vector<Json> rows = metrics("run");
  ASSERT_THAT(rows, SizeIs(6));
  for (int step = 3; step <= 6; ++step) {
    const Json& row = rows[std::size_t(step) - 1];
    EXPECT_EQ(row["antisd/gate"], 1);
    EXPECT_EQ(row["antisd/lambda"], 0.5);
    EXPECT_EQ(row["antisd/gate_too_small"], 1);
    EXPECT_TRUE(row["antisd/tau"].is_null());
  }
  // The choice is kept although another limit would have changed it.
  ASSERT_EQ(train("run", "--resume train.steps=7").status, 0);
  EXPECT_EQ(metrics("run").back()["antisd/gate_too_small"], 1);
}

// The default method on the shipped model, without its recipe: most tokens of a chain are forced,
// so the median of the teacher's entropy is near 0 and the gate needs the mean.
TEST_F(Train, TheDefaultMethodRunsOnTheShippedModel) {
  const fs::path repository = ANTISD_SOURCE_DIR;
  const std::string settings = fmt::format(
      "train model.path='{}' data.train=countdown:3:train:64 data.template=countdown "
      "data.max_prompt_tokens=16 reward.kind=countdown context.max_solution_tokens=64 "
      "rollout.prompts_per_step=2 rollout.group_size=4 rollout.max_sequence_tokens=64 "
      "optim.lr=1e-4 train.micro_batch_tokens=4096 checkpoint.every=0 record.rollouts_every=1 "
      "--threads 1 --device cpu ",
      (repository / "models/countdown").string());
  const auto train_it = [&](const std::string& name, const std::string& more) {
    const Outcome outcome = run(settings + "record.dir=" + name + " " + more);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  };
  train_it("whole", "train.steps=8");
  const std::string log = read_file(folder_ / "whole/log.txt");
  EXPECT_THAT(log, HasSubstr("reads the mean entropy from here on"));
  EXPECT_THAT(log, HasSubstr("acts on responses of any length"));
  EXPECT_THAT(log,
              HasSubstr("model.gradient_checkpointing = auto: the backward pass recomputes 0"));
  EXPECT_THAT(read_file(folder_ / "whole/config.toml"),
              HasSubstr("gradient_checkpointing = \"auto\""));
  const Json state =
      Json::parse(read_file(folder_ / "whole/checkpoints/step-000008/state.json"))["gate"];
  EXPECT_EQ(state["statistic"], "mean");
  ASSERT_THAT(state["warmup"], SizeIs(5));
  ASSERT_THAT(state["warmup_means"], SizeIs(5));
  const std::vector<Json> rows = metrics("whole");
  ASSERT_THAT(rows, SizeIs(8));
  for (std::size_t k = 0; k < 5; ++k) {
    EXPECT_NEAR(state["warmup"][k].get<double>(), rows[k]["teacher/entropy_median"].get<double>(),
                1e-6);
    EXPECT_NEAR(state["warmup_means"][k].get<double>(),
                rows[k]["teacher/entropy_mean"].get<double>(), 1e-6);
    EXPECT_FALSE(rows[k].contains("antisd/gate_reads_mean") && k < 4);
  }
  EXPECT_EQ(rows[5]["antisd/gate_reads_mean"], 1);
  EXPECT_EQ(rows[5]["antisd/gate_too_small"], 0);
  EXPECT_EQ(rows[5]["antisd/gate_signal"], rows[5]["teacher/entropy_mean"]);
  // Stopped during and after the warm-up: no byte differs.
  train_it("parts", "train.steps=3");
  train_it("parts", "train.steps=6 --resume");
  train_it("parts", "train.steps=8 --resume");
  EXPECT_EQ(weights("parts", 8), weights("whole", 8));
  EXPECT_EQ(reproducible("parts"), reproducible("whole"));
}

// OpenMP threads sleep while they wait (libgomp prints its spin count), unless the user sets how to
// wait; child processes do not inherit it. The number of threads changes no byte.
TEST_F(Train, ThreadsWaitWithoutSpinning) {
  if (available_threads() == 1) GTEST_SKIP() << "one core";
  write("reward.py", R"(
import json, os, sys
for line in iter(sys.stdin.readline, ""):
    row = json.loads(line)
    seen = [name for name in ("OMP_WAIT_POLICY",) if name in os.environ]
    print(json.dumps({"id": row["id"], "reward": float("win" in row["response"].split()), "reason": " ".join(seen) or "nothing"}), flush=True)
)");
  const auto train_with = [&](const std::string& variables, const std::string& directory) {
    // Tests run with OMP_WAIT_POLICY set (cmake/AntisdLayer.cmake).
    EXPECT_EQ(shell(fmt::format("unset OMP_WAIT_POLICY; OMP_DISPLAY_ENV=verbose {} antisd train "
                                "run.toml record.dir={} --device cpu >out 2>err",
                                variables, directory)),
              0);
    return read_file(folder_ / "err");
  };
  EXPECT_THAT(train_with("", "asleep"), HasSubstr("GOMP_SPINCOUNT = '0'"));
  int graded = 0;
  for (int step = 1; step <= 6; ++step) {
    JsonlReader rollouts(folder_ / fmt::format("asleep/rollouts/step-{:06}.jsonl", step));
    for (Json row; rollouts.next(row);) {
      if (row["reason"] == "truncated") continue;  // the reward program does not see these
      EXPECT_EQ(row["reason"], "nothing");
      ++graded;
    }
  }
  EXPECT_GT(graded, 0);
  const std::string asked = train_with("GOMP_SPINCOUNT=77", "asked");
  EXPECT_THAT(asked, AllOf(HasSubstr("GOMP_SPINCOUNT = '77'"),
                           ::testing::Not(HasSubstr("GOMP_SPINCOUNT = '0'"))));
  ASSERT_EQ(train("alone").status, 0);  // one thread
  EXPECT_EQ(weights("asleep", 6), weights("alone", 6));
  EXPECT_EQ(reproducible("asleep"), reproducible("alone"));
}

TEST_F(Train, ARewardThatIsNoNumberIsNoGrade) {
  write_file_atomically(folder_ / "reward.py", R"(
import json, sys
for line in iter(sys.stdin.readline, ""):
    row = json.loads(line)
    reward = float("nan") if "win" in row["response"] else len(row["response"]) % 2
    print(json.dumps({"id": row["id"], "reward": reward}), flush=True)
)");
  const Outcome outcome = train("run", "rollout.max_sequence_tokens=40 reward.give_up_after=6");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("reward.command gave a reward that is not a number: NaN"));
  std::set<bool> seen;
  JsonlReader reader(folder_ / "run/rollouts/step-000001.jsonl");
  for (Json row; reader.next(row);) {
    if (row["truncated"] == true) continue;
    const bool has_win = row["text"].get<std::string>().find("win") != std::string::npos;
    EXPECT_EQ(row["reward"].is_null(), has_win) << row;
    EXPECT_EQ(row["group_advantage"].is_null(), has_win) << row;
    seen.insert(has_win);
  }
  EXPECT_THAT(seen, SizeIs(2));
}

TEST_F(Train, ADryRunSaysEverythingWithoutWeights) {
  fs::remove(folder_ / "model/model.safetensors");
  const auto dry_run = [&](const std::string& more) {
    Outcome outcome = train("dry", "--dry-run " + more);
    outcome.err += outcome.out;
    return outcome;
  };
  const Outcome outcome = dry_run("");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_FALSE(fs::exists(folder_ / "dry"));
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("antisd: A_t = A - lambda phi(u)"), HasSubstr("no weights here"),
                    HasSubstr("has no chat template"), HasSubstr("6 rows read, 6 kept"),
                    HasSubstr("0 over the limit of 16"), HasSubstr("prompt of 'p0'"),
                    HasSubstr("teacher's prompt of 'p0'"), HasSubstr("3.00 passes over the data")));
  // 20 words x 16, two layers, as bytes of fp32: see memory_plan_test for the rest.
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("weights"), HasSubstr("moments"), HasSubstr("gradients"),
                                 HasSubstr("activations"), HasSubstr("keys and values"),
                                 HasSubstr("layer's values"), HasSubstr("are free"),
                                 HasSubstr("seconds      not known for cpu"),
                                 HasSubstr("the backward pass recomputes 0 of 2 layers")));
  EXPECT_THAT(dry_run("--processes 2 dist.shard=optimizer").err,
              AllOf(HasSubstr("by each of 2 ranks"), HasSubstr("one part of 2")));

  const auto refused = [&](const std::string& more, const std::string& why) {
    const Outcome failed = dry_run(more);
    EXPECT_EQ(failed.status, 2) << failed.err;
    EXPECT_THAT(failed.err, HasSubstr(why));
  };
  refused("data.train=missing.jsonl", "missing.jsonl");
  refused("data.max_prompt_tokens=2", "problems.jsonl");
  refused("eval.benches=missing_bench.jsonl", "missing_bench.jsonl");
  refused("train.init_from=missing/step-000001 model.path=''", "missing");
  // A missing device is only reported: the run may be planned for another machine.
  const Outcome elsewhere = dry_run(
      "rollout.prompts_per_step=1000000 rollout.max_sequence_tokens=128 "
      "train.micro_batch_tokens=100000000000 train.init_from=missing/step-000001");
  EXPECT_EQ(elsewhere.status, 0);
  EXPECT_THAT(elsewhere.err,
              AllOf(HasSubstr("warning: training needs about"), HasSubstr("GiB free"),
                    HasSubstr("warning: train.init_from: missing/step-000001")));
  write_file_atomically(folder_ / "model/config.json", R"({"model_type":"mamba"})");
  refused("", "mamba");
}

TEST_F(Train, ATornCheckpointIsSkippedAndSaid) {
  ASSERT_EQ(train("run", "train.steps=4 checkpoint.every=2").status, 0);
  const fs::path newest = folder_ / "run/checkpoints/step-000004";
  const std::string whole = weights("run", 4);
  std::string state = read_file(newest / "state.json");
  state[state.size() / 2] ^= 1;
  write_file_atomically(newest / "state.json", state);
  const Outcome resumed = train("run", "train.steps=4 --resume");
  EXPECT_EQ(resumed.status, 0);
  EXPECT_THAT(resumed.err, AllOf(HasSubstr("skipped"), HasSubstr("step-000004"),
                                 HasSubstr("going on from"), HasSubstr("step-000002")));
  EXPECT_EQ(weights("run", 4), whole);
  EXPECT_THAT(metrics("run"), SizeIs(4));
}

TEST_F(Train, ContinualTrainingInheritsOptimizerAndCursor) {
  ASSERT_EQ(train("grpo", "method.name=grpo train.steps=4").status, 0);
  const std::string parent = (folder_ / "grpo/checkpoints/step-000004").string();
  const Outcome outcome =
      train("antisd", fmt::format("train.init_from='{}' train.steps=3", parent));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const Json before = Json::parse(read_file(folder_ / "grpo/checkpoints/step-000004/state.json"));
  const Json after = Json::parse(read_file(folder_ / "antisd/checkpoints/step-000003/state.json"));
  EXPECT_EQ(after["step"], 3);
  EXPECT_EQ(after["steps_before"], 4);
  EXPECT_EQ(after["reference"], before["reference"]);
  const auto given = [](const Json& state) {
    return state["prompts"]["epoch"].get<int>() * 6 + state["prompts"]["position"].get<int>();
  };
  EXPECT_EQ(given(before), 12);
  EXPECT_EQ(given(after), 21);
  EXPECT_EQ(after["gate"]["steps"], 3);  // its own warm-up
  EXPECT_TRUE(after["gate"]["h_warm"].is_number());
  EXPECT_EQ(metrics("antisd").front()["training/global_step"], 1);
  // The first step starts from the parent's weights: sampler and update agree.
  EXPECT_LT(metrics("antisd").front()["training/rollout_probs_diff_max"].get<double>(), 1e-5);
  // Resuming it changes no byte either.
  const std::string settings = fmt::format("train.init_from='{}' ", parent);
  ASSERT_EQ(train("parts", settings + "train.steps=1").status, 0);
  ASSERT_EQ(train("parts", settings + "train.steps=3 --resume").status, 0);
  EXPECT_EQ(weights("parts", 3), weights("antisd", 3));
  EXPECT_EQ(reproducible("parts"), reproducible("antisd"));
  // A run directory stands for its newest checkpoint.
  EXPECT_EQ(
      train("again", fmt::format("train.init_from='{}' train.steps=1", (folder_ / "grpo").string()))
          .status,
      0);
}

// Every method, and the released code's settings, from the dump only, with numpy.
TEST_F(Train, AnIndependentScriptRecomputesEveryAdvantage) {
  const fs::path repository = ANTISD_SOURCE_DIR;
  const fs::path python = repository / ".deps/reference/bin/python";
  if (!fs::exists(python)) GTEST_SKIP() << "needs `make references`";
  const auto recomputed = [&](const std::string& run, const std::string& settings) {
    const Outcome outcome = train(run, settings);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::string command = fmt::format("'{}' '{}' '{}' >'{}'", python.string(),
                                            (repository / "tools/check_advantages.py").string(),
                                            (folder_ / run).string(), (folder_ / "said").string());
    EXPECT_EQ(std::system(command.c_str()), 0) << run << ": " << read_file(folder_ / "said");
  };
  for (const MethodRow& row : method_table()) {
    if (row.distils) continue;  // it has no advantage
    recomputed(std::string(row.name), fmt::format("method.name={} train.steps=5", row.name));
  }
  // An untrained model has perplexities near 20: with a limit of 3 no response would be left.
  const std::string released =
      "method.preset=released rollout.max_sequence_tokens=24 method.gate.max_perplexity=22 "
      "method.signal.max_response_tokens=14 train.steps=6 optim.lr=0.01 ";
  // A gate that chooses the mean, one that finds nothing to measure, and one on the previous step.
  recomputed("mean", "method.gate.statistic=mean train.steps=5");
  recomputed("too-small", "method.gate.min_warm=50 train.steps=5");
  recomputed("before", "method.gate.previous_step=true optim.lr=0.03 train.steps=6");
  // Responses that go on in later steps, and weights by who sampled a token.
  const std::string partial =
      "rollout.partial=true rollout.partial_tokens=4 train.steps=6 optim.lr=0.03 ";
  recomputed("partial", partial);
  recomputed("tis", partial + "loss.rollout_correction=tis loss.rollout_correction_cap=1.05");
  recomputed("mask", partial +
                         "loss.rollout_correction=mask loss.rollout_correction_cap=1.2 "
                         "train.minibatches=2");
  double cut = 0;
  for (const char* run : {"tis", "mask"})
    for (const Json& row : metrics(run))
      cut += row["actor/rollout_cut_fraction"].get<double>();
  EXPECT_GT(cut, 0.1);
  recomputed("released", released);
  recomputed("released-sd", released + "method.name=sd");
  // Some responses have a weight, and the weights differ.
  std::set<double> weights;
  for (const char* file : {"rollouts/step-000003.jsonl", "rollouts/step-000006.jsonl"}) {
    JsonlReader reader(folder_ / "released" / file);
    for (Json row; reader.next(row);)
      weights.insert(row["lambda"].get<double>());
  }
  EXPECT_GT(weights.size(), 3u);
}

TEST_F(Train, TensorboardReadsWhatTheRunWrote) {
  const fs::path repository = ANTISD_SOURCE_DIR;
  const fs::path python = repository / ".deps/reference/bin/python";
  if (!fs::exists(python)) GTEST_SKIP() << "needs `make references`";
  ASSERT_EQ(train("run", "train.steps=4 checkpoint.every=2").status, 0);
  fs::remove_all(folder_ / "run/checkpoints/step-000004");  // so that two steps are repeated
  ASSERT_EQ(train("run", "train.steps=5 checkpoint.every=2 --resume").status, 0);
  const fs::path out = folder_ / "scalars.json";
  const std::string command =
      fmt::format("'{}' '{}/tools/read_tensorboard.py' '{}' >'{}' 2>/dev/null", python.string(),
                  repository.string(), (folder_ / "run").string(), out.string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::string text = read_file(out);
  for (std::size_t at = 0; (at = text.find("NaN", at)) != std::string::npos;)
    text.replace(at, 3, "null");  // JSON has no NaN
  const Json scalars = Json::parse(text);
  const std::vector<Json> rows = metrics("run");
  ASSERT_THAT(rows, SizeIs(5));
  int compared = 0;
  for (const Json& row : rows) {
    for (const auto& [name, value] : row.items()) {
      if (!value.is_number() || name == "training/global_step" || name == "time") continue;
      ASSERT_TRUE(scalars.contains(name)) << name;
      int found = 0;
      for (const Json& point : scalars[name]) {
        if (point[0] != row["training/global_step"]) continue;
        ++found;
        EXPECT_EQ(point[1].get<float>(), value.get<float>()) << name;
      }
      EXPECT_EQ(found, 1) << name << " of step " << row["training/global_step"];
      ++compared;
    }
  }
  EXPECT_GT(compared, 200);
}

TEST_F(Train, MistakesAreOneClearMessage) {
  const auto message = [&](const std::string& run, const std::string& more) {
    const Outcome outcome = train(run, more);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(message("a", "rollout.group_size=1"), HasSubstr("group_size"));
  EXPECT_THAT(message("b", "train.stepz=1"), HasSubstr("train.steps"));
  EXPECT_THAT(message("d", "data.train=missing.jsonl"), HasSubstr("missing.jsonl"));
  EXPECT_THAT(message("e", "model.path=missing"), HasSubstr("missing"));
  EXPECT_THAT(message("f", "method.gate.min_warm=50 method.gate.on_too_small=stop"),
              HasSubstr("too small to gate on"));
  write_file_atomically(folder_ / "questions.jsonl", R"({"id":"q0","problem":"1 2 3"})");
  EXPECT_THAT(message("g", "reward.kind=math data.train=" + (folder_ / "questions.jsonl").string()),
              AllOf(HasSubstr("questions.jsonl"), HasSubstr("answer")));
  EXPECT_THAT(message("i", "reward.kind=code"),
              AllOf(HasSubstr("problem 'p0'"), HasSubstr("no tests"), HasSubstr("data convert")));
  EXPECT_THAT(
      message("j", "reward.kind=countdown data.train=" + (folder_ / "questions.jsonl").string()),
      AllOf(HasSubstr("problem 'q0'"), HasSubstr("no numbers and target")));

  ASSERT_EQ(train("run", "train.steps=2").status, 0);
  EXPECT_THAT(message("run", ""), HasSubstr("--resume"));
  EXPECT_THAT(message("run", "--resume train.seed=3"), HasSubstr("seed"));

  // A checkpoint of another architecture, to resume and to start from.
  testing::make_small_model(folder_ / "other");
  Json shape = Json::parse(read_file(folder_ / "other/config.json"));
  shape["hidden_size"] = 24;
  write_file_atomically(folder_ / "other/config.json", shape.dump());
  const std::string other = "model.path=" + (folder_ / "other").string();
  EXPECT_THAT(message("run", "--resume " + other), HasSubstr("--allow model.path"));
  EXPECT_THAT(message("run", "--resume --allow model.path " + other), HasSubstr("[20, 16]"));
  EXPECT_THAT(
      message("h", fmt::format("{} train.init_from='{}'", other, (folder_ / "run").string())),
      HasSubstr("[20, 16]"));
  testing::make_small_problems(folder_ / "problems.jsonl", 5);
  EXPECT_THAT(message("run", "--resume"), HasSubstr("the data set had 6 problems"));
  fs::remove(folder_ / "problems.jsonl");
  EXPECT_THAT(message("run", "--resume"), HasSubstr("problems.jsonl"));
  // Nothing is lost, neither steps nor the run's own record.
  EXPECT_EQ(metrics("run").size(), 2u);
  const Json run = Json::parse(read_file(folder_ / "run/run.json"));
  EXPECT_EQ(run["exit_reason"], "finished");
  EXPECT_TRUE(run.contains("version"));
  EXPECT_THAT(read_file(folder_ / "run/log.txt"), HasSubstr("the data set had 6 problems"));
}

}  // namespace
}  // namespace antisd::inline cli
