// `train` and `pretrain` when writing fails: limits, full disks, closed pipes, and every system
// call on the run directory in turn.

#include <gmock/gmock.h>

#include "cli/weights/train_testing.h"
#include "core/faults/testing.h"
#include "run/checkpoint/checkpoint.h"
#include "run/checkpoint/folders.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using testing::FaultKind;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using ::testing::SizeIs;

class TrainLimits : public testing::TrainTest {
 protected:
  static constexpr const char* kSettings =
      "train run.toml --threads 1 --device cpu train.steps=3 checkpoint.every=2 checkpoint.keep=1 "
      "record.rollouts_every=2 reward.kind=countdown ";

  // `antisd` with calls on `folder` counted and failing as `fault` says, set through the
  // environment.
  std::string with_faults(const std::string& folder, const std::string& fault) const {
    return fmt::format(
        "env LD_PRELOAD='{}' ANTISD_FAULT_FOLDER='{}' ANTISD_FAULT='{}' "
        "ASAN_OPTIONS=verify_asan_link_order=0",
        ANTISD_FAULTS_LIBRARY, fs::canonical(folder_.path()).string() + "/" + folder, fault);
  }

  Json run_json(const std::string& run) const {
    return Json::parse(read_file(folder_ / run / "run.json"));
  }

  std::string err() const { return read_file(folder_ / "err"); }
};

TEST_F(TrainLimits, AFileSizeLimitEndsARunAsAFullDiskDoes) {
  // In blocks of 512 bytes: rows fit, weights do not.
  const int status =
      shell(fmt::format("ulimit -f 16 && antisd {} record.dir=run >out 2>err", kSettings));
  EXPECT_EQ(status, 1) << err();
  EXPECT_THAT(err(), AllOf(HasSubstr("STEP 2 WAS NOT SAVED"), HasSubstr("step 3 was not saved"),
                           HasSubstr("ulimit -f"), Not(HasSubstr("trying again"))));
  EXPECT_THAT(run_json("run")["exit_reason"], HasSubstr("step 3 was not saved"));
  EXPECT_FALSE(find_newest_whole(folder_ / "run/checkpoints").found);

  const std::string pretrain =
      "pretrain pretrain.source=countdown:3 pretrain.new_model.hidden=32 "
      "pretrain.new_model.layers=1 pretrain.new_model.heads=2 pretrain.new_model.head_dim=16 "
      "pretrain.new_model.intermediate=64 pretrain.new_model.positions=256 "
      "pretrain.documents_per_step=4 pretrain.sequence_tokens=256 pretrain.eval_documents=4 "
      "pretrain.samples=0 train.steps=2 --threads 1 --device cpu record.dir=documents";
  EXPECT_EQ(shell(fmt::format("ulimit -f 64 && antisd {} >out 2>err", pretrain)), 1) << err();
  EXPECT_THAT(err(), HasSubstr("step 2 was not saved"));
}

// The disk becomes full during the run; only writes below checkpoints/ fail.
TEST_F(TrainLimits, AFullDiskFailsTheRunAndASignalEndsTheWaiting) {
  const std::string line = fmt::format(
      "cd '{}' && exec {} '{}/antisd' {} record.dir=run >out 2>err", folder_.path().string(),
      with_faults("run/checkpoints", "1 28 on"), ANTISD_BINARY_DIR, kSettings);
  write("err", "");
  const pid_t pid = fork();
  if (pid == 0) {
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  for (int i = 0; i < 3000 && err().find("ends the waiting") == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(pid, SIGTERM);
  EXPECT_EQ(status_of(pid), 1) << err();
  EXPECT_THAT(err(), AllOf(HasSubstr("step 3 is not saved yet"), HasSubstr("no space is left"),
                           HasSubstr("step 3 was not saved"), HasSubstr("free some space")));
  EXPECT_THAT(run_json("run")["exit_reason"], HasSubstr("step 3 was not saved"));
  // With free space again, it finishes like any other run.
  ASSERT_EQ(run(std::string(kSettings) + "record.dir=run --resume").status, 0) << err();
  ASSERT_EQ(run(std::string(kSettings) + "record.dir=whole").status, 0) << err();
  EXPECT_EQ(weights("run", 3), weights("whole", 3));
}

// When space becomes free, a later attempt saves the last step.
TEST_F(TrainLimits, TheLastSaveIsTriedAgain) {
  const std::string line = fmt::format("{} antisd {} record.dir=run checkpoint.every=0 >out 2>err",
                                       with_faults("run/checkpoints", "2 28 once"), kSettings);
  EXPECT_EQ(shell(line), 0) << err();
  EXPECT_THAT(err(), AllOf(HasSubstr("step 3 is not saved yet"), Not(HasSubstr("was not saved"))));
  EXPECT_EQ(run_json("run")["exit_reason"], "finished");
  EXPECT_EQ(find_newest_whole(folder_ / "run/checkpoints").found->step, 3);
}

TEST_F(TrainLimits, AClosedPipeEndsNoRun) {
  ASSERT_EQ(shell(fmt::format("antisd {} record.dir=run 2>&1 | head -1 >first", kSettings)), 0);
  EXPECT_EQ(run_json("run")["exit_reason"], "finished");
  EXPECT_THAT(metrics("run"), SizeIs(3));
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/step-000003"));
  EXPECT_THAT(read_file(folder_ / "run/log.txt"), HasSubstr("steps 1 to 3"));
  // A command over rows ends when its reader does.
  std::string rows;
  for (int i = 0; i < 20'000; ++i)
    rows += "{\"problem\":\"Numbers 1 2 target 3\",\"response\":\"1 + 2 = 3\"}\n";
  write("rows", rows);
  EXPECT_EQ(shell("(antisd grade countdown rows 2>err; echo $? >status) | head -1 >first"), 0);
  EXPECT_EQ(err(), "");
  EXPECT_EQ(read_file(folder_ / "status"), "141\n");  // SIGPIPE, as a shell reports it
}

// Signals that the program ignores are not ignored in its reward programs.
TEST_F(TrainLimits, RewardProgramsHaveTheUsualSignals) {
  write("reward.sh", "grep SigIgn /proc/$$/status >ignored\nexec python3 " + path("reward.py"));
  ASSERT_EQ(train("run", "train.steps=1 reward.command='sh reward.sh'").status, 0) << err();
  std::istringstream line(read_file(folder_ / "ignored"));
  std::string name;
  std::uint64_t mask = 0;
  line >> name >> std::hex >> mask;
  EXPECT_EQ(name, "SigIgn:");
  for (const int signal : {SIGPIPE, SIGXFSZ})
    EXPECT_EQ(mask >> (signal - 1) & 1, 0u) << signal;
}

TEST_F(TrainLimits, NumbersThatAreNoneAreRefused) {
  for (const char* setting : {"optim.lr=inf", "optim.lr=nan", "optim.grad_clip=inf",
                              "rollout.temperature=-inf", "optim.betas='[0.9, nan]'"}) {
    const Outcome outcome = train("none", setting);
    EXPECT_EQ(outcome.status, 2) << setting;
    EXPECT_THAT(outcome.err, HasSubstr("out of range")) << setting;
  }
  write("inf.toml", "[optim]\nlr = inf\n");
  const Outcome outcome = run("train inf.toml");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("inf.toml:2: optim.lr = inf is out of range"));
  EXPECT_EQ(run("sweep run.toml --memory nan").status, 2);
  EXPECT_EQ(run("grade code --timeout nan rows").status, 2);
  EXPECT_EQ(run("score model --temperature inf rows").status, 2);
}

TEST_F(TrainLimits, TheDryRunComparesTheDiskWithTheCheckpoints) {
  const Outcome outcome = train("run", "--dry-run checkpoint.keep=2 checkpoint.every=1");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("disk "), HasSubstr("3 checkpoints of "), HasSubstr("free")));
}

// The n-th call on the run directory fails; ANTISD_FAULTS=all tries every one (tools/fault_test).
TEST_F(TrainLimits, WhateverTheDiskRefusesTheRunIsWholeOrSaysSo) {
  ASSERT_EQ(
      run(std::string(kSettings) + "record.dir=whole checkpoint.every=1 checkpoint.keep=9").status,
      0);
  const std::string log = path("calls");
  ASSERT_EQ(shell(fmt::format("ANTISD_FAULT_LOG='{}' {} antisd {} record.dir=run >out 2>err", log,
                              with_faults("run", "0 0 once"), kSettings)),
            0)
      << err();
  const std::string text = read_file(log);
  const std::int64_t calls = std::count(text.begin(), text.end(), '\n');
  ASSERT_GT(calls, 100);
  std::int64_t runs = 0, failed = 0, kinds = 0;
  // A run takes most of a second, so no call is tried in all five ways: they take turns.
  const std::int64_t stride = std::max<std::int64_t>(testing::fault_stride(calls / 2), 5);
  for (const FaultKind& kind : testing::fault_kinds()) {
    if (kind.on) continue;  // TrainerFaults tests these, without the pauses before a last try
    for (std::int64_t call = 1 + kinds++ * stride / 5; call <= calls; call += stride) {
      fs::remove_all(folder_ / "run");
      const int status =
          shell(fmt::format("{} antisd {} record.dir=run >out 2>err",
                            with_faults("run", fmt::format("{} {} {}", call, kind.error,
                                                           kind.is_short ? "short" : "once")),
                            kSettings));
      ++runs;
      failed += status != 0;
      SCOPED_TRACE(::testing::Message() << kind.name << " at call " << call << "\n" << err());
      ASSERT_THAT(status, AnyOf(0, 1));
      EXPECT_THAT(err(), Not(HasSubstr("internal error")));
      for (const StepFolder& found : step_folders(folder_ / "run/checkpoints"))
        EXPECT_EQ(weights("run", int(found.step)), weights("whole", int(found.step)));
      const fs::path last = folder_ / "run/checkpoints/step-000003";
      EXPECT_EQ(fs::exists(last), status == 0);
      if (status != 0) {
        EXPECT_THAT(err(), HasSubstr("antisd: "));
      }
      if (HasFailure()) return;
    }
  }
  fmt::print("{} calls, {} runs with a fault, {} of them failed\n", calls, runs, failed);
}

}  // namespace
}  // namespace antisd::inline cli
