// Models and data by the hub's names, as a user gives them.

#include <gmock/gmock.h>

#include "cli/weights/train_testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;

const std::string kModelCommit(40, 'a'), kDataCommit(40, 'b');

// The small model and problems as snapshots of a cache, under other names than the files here.
class TrainNames : public testing::TrainTest {
 protected:
  TrainNames() : TrainTest({"train.steps=1", "checkpoint.every=1"}) {
    add("models--tiny--small", kModelCommit);
    fs::copy(folder_ / "model", snapshot("models--tiny--small", kModelCommit));
    add("datasets--tiny--problems", kDataCommit);
    const fs::path data = snapshot("datasets--tiny--problems", kDataCommit);
    fs::create_directories(data);
    fs::rename(folder_ / "problems.jsonl", data / "train.jsonl");
    fs::rename(folder_ / "model", folder_ / "elsewhere");
    setenv("HF_HUB_CACHE", path("cache").c_str(), 1);
  }
  ~TrainNames() override { unsetenv("HF_HUB_CACHE"); }

  void add(const std::string& repo, const std::string& commit) const {
    fs::create_directories(folder_ / ("cache/" + repo + "/refs"));
    fs::create_directories(folder_ / ("cache/" + repo + "/snapshots"));
    write("cache/" + repo + "/refs/main", commit);
  }
  fs::path snapshot(const std::string& repo, const std::string& commit) const {
    return folder_ / ("cache/" + repo + "/snapshots/" + commit);
  }
  static std::string names() { return "model.path=tiny/small data.train=tiny/problems "; }
};

TEST_F(TrainNames, ARunRecordsTheRevisions) {
  const Outcome outcome = train("run", names());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string config = read_file(folder_ / "run/config.toml");
  EXPECT_THAT(config, AllOf(HasSubstr("path = \"tiny/small@" + kModelCommit + "\""),
                            HasSubstr("\"tiny/problems@" + kDataCommit + ":default/train\"")));
  // Training with that file repeats the run, whatever main is by then.
  write("cache/models--tiny--small/refs/main", std::string(40, 'c'));
  const Outcome again = run("train run/config.toml record.dir=again --threads 1 --device cpu");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(weights("run", 1), weights("again", 1));
  // The name alone is another model now.
  const Outcome moved = train("third", names());
  EXPECT_EQ(moved.status, 2);
  EXPECT_THAT(moved.err, AllOf(HasSubstr("no revision 'main'"), HasSubstr(kModelCommit)));
}

TEST_F(TrainNames, AnAdapterNamesItsBase) {
  ASSERT_EQ(train("run", names() + "model.lora.rank=4").status, 0);
  const std::string adapter = "run/checkpoints/step-000001/adapter";
  const Json config = Json::parse(read_file(folder_ / (adapter + "/adapter_config.json")));
  EXPECT_EQ(config["base_model_name_or_path"], "tiny/small");
  EXPECT_EQ(config["revision"], kModelCommit);
  const Outcome score =
      run("score " + adapter + " --device cpu", R"({"prompt_ids": [1, 2], "response_ids": [3]})");
  EXPECT_EQ(score.status, 0) << score.err;
  fs::rename(folder_ / "cache", folder_ / "gone");
  const Outcome without =
      run("score " + adapter + " --device cpu", R"({"prompt_ids": [1, 2], "response_ids": [3]})");
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.err, HasSubstr("`antisd fetch tiny/small@" + kModelCommit + "`"));
  EXPECT_EQ(run("score " + adapter + " --base elsewhere --device cpu",
                R"({"prompt_ids": [1, 2], "response_ids": [3]})")
                .status,
            0);
}

TEST_F(TrainNames, OtherCommandsTakeThem) {
  const std::string row = R"({"prompt_ids": [1, 2], "response_ids": [3]})";
  const Outcome by_name = run("score tiny/small --device cpu", row);
  EXPECT_EQ(by_name.out, run("score elsewhere --device cpu", row).out);
  EXPECT_NE(by_name.out, "");
  const Outcome eval =
      run("eval tiny/small run.toml data.train=tiny/problems eval.benches=tiny/problems "
          "eval.n.default=1 --device cpu --threads 1");
  ASSERT_EQ(eval.status, 0) << eval.err;
  const Json summary = Json::parse(eval.out);
  EXPECT_EQ(summary["model"], "tiny/small@" + kModelCommit);
  EXPECT_TRUE(fs::exists(folder_ / "eval/small/summary.json"));
  const Outcome absent = run("tokenize tiny/large");
  EXPECT_EQ(absent.status, 2);
  EXPECT_THAT(absent.err, AllOf(HasSubstr("no such folder"), HasSubstr("`hf download tiny/large`"),
                                Not(HasSubstr("\n  "))));
}

}  // namespace
}  // namespace antisd::inline cli
