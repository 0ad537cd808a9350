// `train --resume` with another configuration, and a run directory that is removed.

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

class TrainResume : public testing::TrainTest {};

TEST_F(TrainResume, EveryDifferenceIsSaidAndTheOldConfigurationStays) {
  ASSERT_EQ(train("run", "train.steps=2").status, 0);
  const std::string before = read_file(folder_ / "run/config.toml");
  const Outcome resumed = train(
      "run", "--resume train.steps=3 optim.lr=0.001 rollout.temperature=0.5 loss.kl_coef=0.1");
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  const auto says_all =
      AllOf(HasSubstr("optim.lr: 0.003 -> 0.001"), HasSubstr("rollout.temperature: 1.0 -> 0.5"),
            HasSubstr("loss.kl_coef: 0.0 -> 0.1"), HasSubstr("train.steps: 2 -> 3"));
  EXPECT_THAT(resumed.err, says_all);
  EXPECT_THAT(read_file(folder_ / "run/log.txt"), says_all);
  EXPECT_EQ(read_file(folder_ / "run/config.step-000002.toml"), before);
  EXPECT_THAT(read_file(folder_ / "run/config.toml"), HasSubstr("lr = 0.001\n"));
  // A failed start from the same step does not replace them.
  fs::remove_all(folder_ / "run/checkpoints/step-000003");
  ASSERT_EQ(train("run", "--resume train.steps=3 optim.lr=0.002").status, 0);
  EXPECT_EQ(read_file(folder_ / "run/config.step-000002.toml"), before);
  // Nothing changed: no message, no file.
  const Outcome same = train("run", "--resume train.steps=3 optim.lr=0.002");
  EXPECT_THAT(same.err, Not(HasSubstr(" -> ")));
  EXPECT_FALSE(fs::exists(folder_ / "run/config.step-000003.toml"));
}

TEST_F(TrainResume, AnotherMeaningIsRefusedUnlessAllowed) {
  ASSERT_EQ(train("run", "train.steps=2 data.template=none").status, 0);
  const std::string before = read_file(folder_ / "run/config.toml");
  const std::string changed =
      "--resume train.steps=3 data.template=countdown reward.kind=countdown ";
  const Outcome refused = train("run", changed + "--allow reward");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("run/config.toml"),
                                 HasSubstr("data.template: \"none\" -> \"countdown\""),
                                 HasSubstr("allow it with --allow data.template")));
  EXPECT_EQ(read_file(folder_ / "run/config.toml"), before);
  EXPECT_THAT(metrics("run"), SizeIs(2));
  const Outcome allowed = train("run", changed + "--allow reward --allow data.template");
  EXPECT_EQ(allowed.status, 0) << allowed.err;
  EXPECT_THAT(allowed.err, HasSubstr("reward.kind: \"command\" -> \"countdown\""));
  EXPECT_THAT(metrics("run"), SizeIs(3));
  EXPECT_EQ(train("run", "--allow reward").status, 2);  // without --resume
  EXPECT_THAT(train("run", "--resume --allow rewards").err, HasSubstr("did you mean 'reward'?"));
}

// Written by another version: a missing key gets its default, an unknown key gives a warning.
TEST_F(TrainResume, AConfigurationOfAnotherVersion) {
  ASSERT_EQ(train("run", "train.steps=2 record.tensorboard=false").status, 0);
  std::string settings = read_file(folder_ / "run/config.toml");
  const std::string line = "tensorboard = false\n";
  ASSERT_NE(settings.find(line), std::string::npos);
  settings.erase(settings.find(line), line.size());
  write("run/config.toml", settings);
  EXPECT_THAT(train("run", "--resume train.steps=3 record.tensorboard=false").err,
              HasSubstr("record.tensorboard: true -> false"));
  write("run/config.toml", settings + "colour = 'blue'\n");
  const Outcome unknown = train("run", "--resume train.steps=4");
  EXPECT_EQ(unknown.status, 0) << unknown.err;
  EXPECT_THAT(unknown.err,
              AllOf(HasSubstr("cannot compare with the configuration"), HasSubstr("colour")));
}

TEST_F(TrainResume, AWholeRowThatLacksItsLineEndIsKept) {
  ASSERT_EQ(train("run", "train.steps=2").status, 0);
  const std::string rows = read_file(folder_ / "run/metrics.jsonl");
  write("run/metrics.jsonl", rows.substr(0, rows.size() - 1));
  ASSERT_EQ(train("run", "--resume train.steps=3").status, 0);
  EXPECT_TRUE(read_file(folder_ / "run/metrics.jsonl").starts_with(rows));
  EXPECT_THAT(metrics("run"), SizeIs(3));
}

TEST_F(TrainResume, ARunDirectoryThatIsRemovedIsMadeAnewAtTheNextSave) {
  const pid_t pid = start("run", "train.steps=100000 record.rollouts_every=0 checkpoint.every=0");
  wait_for_steps("run", 2);
  fs::rename(folder_ / "run", folder_ / "away");
  const auto says = [&](const char* text) {
    return read_file(folder_ / "err").find(text) != std::string::npos;
  };
  for (int i = 0; i < 2000 && !says("was removed while the run goes on"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(pid, SIGTERM);
  EXPECT_EQ(status_of(pid), 130);
  const std::string log = read_file(folder_ / "err");
  const std::size_t first = log.find("was removed while the run goes on");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(log.find("was removed while the run goes on", first + 1), std::string::npos);  // once
  EXPECT_EQ(read_file(folder_ / "run/config.toml"), read_file(folder_ / "away/config.toml"));
  const Json run = Json::parse(read_file(folder_ / "run/run.json"));
  EXPECT_EQ(run["exit_reason"], "stopped by a signal");
  const int done = run["last_step"].get<int>();
  const Outcome resumed = train(
      "run",
      fmt::format("--resume train.steps={} record.rollouts_every=0 checkpoint.every=0", done + 2));
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(metrics("run"), SizeIs(2));
}

TEST_F(TrainResume, WarmUpsThatOutlastTheRunAreWarnedOf) {
  const Outcome warned =
      train("run", "--dry-run optim.warmup_steps=6 method.gate.warmup_steps=9 train.steps=6");
  EXPECT_EQ(warned.status, 0) << warned.err;
  EXPECT_THAT(warned.err, AllOf(HasSubstr("optim.warmup_steps = 6 is not less than train.steps"),
                                HasSubstr("method.gate.warmup_steps = 9 is not less")));
  EXPECT_THAT(train("run", "--dry-run optim.warmup_steps=5").err, Not(HasSubstr("not less than")));
  EXPECT_THAT(train("run", "--dry-run method.name=grpo method.gate.warmup_steps=9").err,
              Not(HasSubstr("not less than")));
}

TEST_F(TrainResume, GroupsAllAlikeAreWarnedOfOnce) {
  write("reward.py", R"(
import json, sys
for line in iter(sys.stdin.readline, ""):
    print(json.dumps({"id": json.loads(line)["id"], "reward": 0}), flush=True)
)");
  const Outcome outcome = train("run", "method.name=grpo train.steps=7");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string warning = "for 5 consecutive steps the rewards of each group were all equal";
  const std::size_t first = outcome.err.find(warning);
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("were all equal", first + warning.size()), std::string::npos);
  EXPECT_THAT(read_file(folder_ / "run/log.txt"), HasSubstr(warning));
}

TEST_F(TrainResume, MistypedTablesAreRefused) {
  const Outcome count = train("run", "eval.n.defualt=3");
  EXPECT_EQ(count.status, 2);
  EXPECT_THAT(count.err, HasSubstr("did you mean 'default'?"));
  EXPECT_EQ(train("run", "data.map.porblem=question").status, 2);
  EXPECT_EQ(train("run", "context.templates.maht=x").status, 2);
  write("model/chat_template.jinja",
        "{% for m in messages %}{{ m.content }}{% endfor %}{{ enable_thinking }}");
  const Outcome chat = train("run", "data.chat_options.enable_thinkin=false");
  EXPECT_EQ(chat.status, 2);
  EXPECT_THAT(chat.err, HasSubstr("did you mean 'enable_thinking'?"));
}

// A pipe in place of a model's file would make any command wait for ever.
TEST_F(TrainResume, AModelWhoseConfigurationIsAPipe) {
  fs::remove(folder_ / "model/config.json");
  ASSERT_EQ(shell("mkfifo model/config.json"), 0);
  EXPECT_EQ(shell("timeout 60 antisd train run.toml record.dir=run --device cpu 2>err"), 2);
  EXPECT_THAT(read_file(folder_ / "err"), HasSubstr("config.json: it is a pipe"));
}

}  // namespace
}  // namespace antisd::inline cli
