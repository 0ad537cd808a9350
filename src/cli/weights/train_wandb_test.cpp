// Runs with record.loggers = wandb: its own package, offline, and what is read back from its files.

#include <gmock/gmock.h>

#include "cli/weights/train_testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using ::testing::SizeIs;

class TrainWandb : public testing::TrainTest {
 protected:
  TrainWandb() : TrainTest({"record.loggers=wandb", "record.wandb.project=sums", "train.steps=4"}) {
    setenv("WANDB_MODE", "offline", 1);
    setenv("ANTISD_PYTHON", kPython.c_str(), 1);
  }
  ~TrainWandb() override {
    unsetenv("WANDB_MODE");
    unsetenv("ANTISD_PYTHON");
  }

  // What wandb's own reader finds, one object for each start.
  std::vector<Json> wandb_runs(const std::string& run) const {
    EXPECT_EQ(shell(fmt::format("'{}' '{}/tools/read_wandb.py' '{}' >read.json", kPython.string(),
                                ANTISD_SOURCE_DIR, run)),
              0);
    return Json::parse(read_file(folder_ / "read.json")).get<std::vector<Json>>();
  }

  // Each number of the rows, once and under its step.
  void expect_rows(const std::vector<Json>& runs, const std::vector<Json>& rows) const {
    std::map<std::int64_t, Json> sent;
    for (const Json& run : runs) {
      for (const Json& row : run["history"])
        EXPECT_TRUE(sent.emplace(row["_step"], row).second) << row["_step"];
    }
    ASSERT_EQ(sent.size(), rows.size());
    for (const Json& row : rows) {
      const Json& found = sent.at(row["training/global_step"].get<std::int64_t>());
      for (const auto& [name, value] : row.items()) {
        if (name == "time" || !value.is_number()) continue;
        EXPECT_EQ(found.value(name, Json()), value) << name;
      }
    }
  }

  static inline const fs::path kPython = fs::path(ANTISD_SOURCE_DIR) / ".deps/reference/bin/python";
};

TEST_F(TrainWandb, ItsOwnReaderFindsEveryRowOnceAlsoAfterAResume) {
  if (!fs::exists(kPython)) GTEST_SKIP() << "needs `make references`";
  const std::string settings =
      "checkpoint.every=2 eval.benches=problems.jsonl eval.n.default=2 eval.every=2 "
      "eval.max_sequence_tokens=20 "
      "record.wandb.tags=small,test ";
  const Outcome first = train("run", settings);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.err, AllOf(HasSubstr("metrics: run/metrics.jsonl, wandb"),
                               Not(HasSubstr("warning: wandb"))));
  ASSERT_THAT(metrics("run"), SizeIs(5));  // step 0 is evaluated
  {
    const std::vector<Json> runs = wandb_runs("run");
    ASSERT_THAT(runs, SizeIs(1));
    EXPECT_EQ(runs[0]["project"], "sums");
    EXPECT_EQ(runs[0]["name"], "run");
    EXPECT_EQ(runs[0]["tags"], Json({"small", "test"}));
    EXPECT_EQ(runs[0]["config"]["train"]["steps"], 4);
    EXPECT_EQ(runs[0]["config"]["rollout"]["group_size"], 4);
    EXPECT_EQ(runs[0]["summary"]["exit_reason"], "finished");
    EXPECT_EQ(runs[0]["exit_code"], 0);
    expect_rows(runs, metrics("run"));
  }
  fs::remove_all(folder_ / "run/checkpoints/step-000004");  // two steps are repeated
  const Outcome second = train("run", settings + "train.steps=5 --resume");
  ASSERT_EQ(second.status, 0) << second.err;
  const std::vector<Json> runs = wandb_runs("run");
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_EQ(runs[1]["id"], runs[0]["id"]);
  ASSERT_THAT(runs[1]["history"], SizeIs(1));
  EXPECT_EQ(runs[1]["history"][0]["_step"], 5);
  EXPECT_EQ(runs[1]["history"][0]["critic/score/mean"], metrics("run")[5]["critic/score/mean"]);
}

TEST_F(TrainWandb, AStopSignalEndsItToo) {
  if (!fs::exists(kPython)) GTEST_SKIP() << "needs `make references`";
  const pid_t pid = start("run", "train.steps=100000 record.rollouts_every=0");
  wait_for_steps("run", 3);
  kill(pid, SIGTERM);
  EXPECT_EQ(status_of(pid), 130);
  const std::vector<Json> runs = wandb_runs("run");
  ASSERT_THAT(runs, SizeIs(1));
  EXPECT_EQ(runs[0]["summary"]["exit_reason"], "stopped by a signal");
  EXPECT_EQ(runs[0]["exit_code"], 130);
  expect_rows(runs, metrics("run"));
}

TEST_F(TrainWandb, EachRunOfASweepIsOneAndOfRanksOnlyTheFirst) {
  if (!fs::exists(kPython)) GTEST_SKIP() << "needs `make references`";
  setenv("WANDB_RUN_ID", "shared", 1);
  const Outcome outcome =
      run("sweep run.toml record.dir=runs --device cpu --methods grpo,antisd --processes 2 "
          "train.steps=2");
  unsetenv("WANDB_RUN_ID");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<Json> grpo = wandb_runs("runs/grpo"), antisd = wandb_runs("runs/antisd");
  ASSERT_THAT(grpo, SizeIs(1));
  ASSERT_THAT(antisd, SizeIs(1));
  EXPECT_NE(grpo[0]["id"], antisd[0]["id"]);
  EXPECT_EQ(grpo[0]["config"]["method"]["name"], "grpo");
  expect_rows(grpo, metrics("runs/grpo"));
  expect_rows(antisd, metrics("runs/antisd"));
}

TEST_F(TrainWandb, PretrainSendsItsRowsToo) {
  if (!fs::exists(kPython)) GTEST_SKIP() << "needs `make references`";
  const Outcome outcome =
      run("pretrain record.dir=run record.loggers=tensorboard,wandb --threads 1 --device cpu "
          "pretrain.source=countdown:3 pretrain.new_model.hidden=32 pretrain.new_model.layers=1 "
          "pretrain.new_model.heads=2 pretrain.new_model.head_dim=16 "
          "pretrain.new_model.intermediate=64 pretrain.new_model.positions=256 "
          "pretrain.documents_per_step=8 pretrain.sequence_tokens=256 train.steps=3");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<Json> runs = wandb_runs("run");
  ASSERT_THAT(runs, SizeIs(1));
  EXPECT_EQ(runs[0]["project"], "antisd");
  expect_rows(runs, metrics("run"));
  EXPECT_THAT(outcome.err, HasSubstr("tensorboard --logdir run"));
}

TEST_F(TrainWandb, AMissingPackageIsOneMessageBeforeAnything) {
  write("python", "#!/bin/sh\nexec python3 -S \"$@\"\n");  // without installed packages
  fs::permissions(folder_ / "python", fs::perms::owner_all);
  setenv("ANTISD_PYTHON", path("python").c_str(), 1);
  for (const std::string& command :
       {std::string("train run.toml"), std::string("train run.toml --dry-run"),
        std::string("sweep run.toml --methods grpo,antisd"),
        std::string("train run.toml --processes 2")}) {
    const Outcome outcome = run(command + " record.dir=run --device cpu");
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("has no package wandb"), HasSubstr("pip install")));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_FALSE(fs::exists(folder_ / "run")) << command;
  }
  EXPECT_EQ(train("run", "record.loggers=tensorboard train.steps=1").status, 0);
}

TEST_F(TrainWandb, WithoutLoggersOnlyTheRowsAreWritten) {
  for (const char* settings :
       {"record.loggers=[]", "record.loggers=tensorboard record.tensorboard=false"}) {
    const Outcome outcome = train("run", fmt::format("{} train.steps=1", settings));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    for (const auto& entry : fs::directory_iterator(folder_ / "run"))
      EXPECT_FALSE(entry.path().filename().string().starts_with("events.")) << settings;
    EXPECT_FALSE(fs::exists(folder_ / "run/wandb.json"));
    fs::remove_all(folder_ / "run");
  }
}

}  // namespace
}  // namespace antisd::inline cli
