// `eval` as a user runs it, and evaluation inside `train`: stopping, resuming, rejecting.

#include <csignal>
#include <thread>

#include "cli/command_testing.h"
#include "eval/results/bench_rows.h"
#include "eval/results/summary.h"
#include "trainer/testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;

class Eval : public testing::CommandTest {
 protected:
  Eval() {
    testing::make_small_model(folder_ / "model");
    testing::make_small_problems(folder_ / "problems.jsonl");
    testing::make_small_problems(folder_ / "wins.jsonl", 9);
    testing::make_small_problems(folder_ / "more.jsonl", 4);
    // A response with "win" is right; one with "lose" cannot be graded.
    write_file_atomically(folder_ / "reward.py", R"(
import json, os, sys, time
for line in iter(sys.stdin.readline, ""):
    row = json.loads(line)
    words = row["response"].split()
    time.sleep(float(os.environ.get("GRADING_SECONDS", "0")))
    reward = None if "lose" in words else float("win" in words)
    print(json.dumps({"id": row["id"], "reward": reward, "reason": "said so"}), flush=True)
)");
    RunConfig config;
    for (const std::string& setting : testing::small_settings(folder_.path()))
      config.options().assign(setting);
    for (const char* setting :
         {"reward.kind=command", "reward.workers=1", "eval.benches=wins,more", "eval.n.default=4",
          "eval.max_sequence_tokens=20", "eval.temperature=1", "eval.top_p=1", "eval.every=0"})
      config.options().assign(setting);
    config.options().assign("reward.command=python3 " + (folder_ / "reward.py").string());
    config.options().assign("eval.dir=" + folder_.path().string());
    write_file_atomically(folder_ / "run.toml", config.options().to_toml(false));
  }

  static constexpr const char* kPlace = " --threads 1 --device cpu";

  Outcome run(const std::string& arguments) const { return CommandTest::run(arguments + kPlace); }
  std::string arguments(const std::string& out, const std::string& more = "") const {
    return fmt::format("eval '{}' '{}' --out '{}' {}", (folder_ / "model").string(),
                       (folder_ / "run.toml").string(), (folder_ / out).string(), more);
  }
  Outcome eval(const std::string& out, const std::string& more = "") const {
    return run(arguments(out, more));
  }
  std::string train_arguments(const std::string& run_folder, const std::string& more) const {
    return fmt::format("train '{}' record.dir='{}' eval.every=2 train.steps=4 {}",
                       (folder_ / "run.toml").string(), (folder_ / run_folder).string(), more);
  }
  Outcome train(const std::string& run_folder, const std::string& more) const {
    return run(train_arguments(run_folder, more));
  }
  // The exit status after a signal that is sent once `file` has its first row.
  int stopped_at(const std::string& file, const std::string& arguments) const {
    const pid_t pid = launch(arguments + kPlace);
    for (int i = 0; i < 6000; ++i) {
      std::error_code error;
      if (fs::file_size(folder_ / file, error) > 0 && !error) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    kill(pid, SIGINT);
    return status_of(pid);
  }
  std::string bytes(const std::string& file) const { return read_file(folder_ / file); }

  std::vector<Json> metrics(const std::string& run_folder) const {
    std::vector<Json> rows;
    JsonlReader reader(folder_ / run_folder / "metrics.jsonl");
    for (Json row; reader.next(row);) {
      for (auto it = row.begin(); it != row.end();)
        it = testing::is_time_metric(it.key()) ? row.erase(it) : std::next(it);
      rows.push_back(row);
    }
    return rows;
  }
};

TEST_F(Eval, SummarisesItsRows) {
  const Outcome outcome = eval("a");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json summary = parse_json(outcome.out, "out");
  EXPECT_EQ(summary, parse_json(bytes("a/summary.json"), "summary"));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("wins"), HasSubstr("pass@4"), HasSubstr("average")));
  // Six of the nine problems are also in the training data, word for word.
  EXPECT_THAT(outcome.err, HasSubstr("6 of the 9 problems of wins are in the training data"));

  const std::vector<SampleRow> rows = read_rows(folder_ / "a/wins.jsonl");
  ASSERT_EQ(rows.size(), 36u);
  std::int64_t right = 0, failed = 0, cut = 0;
  for (const SampleRow& row : rows) {
    const bool loses = row.response.find("lose") != std::string::npos;
    const bool wins = row.response.find("win") != std::string::npos;
    if (row.truncated) {
      ++cut;
      EXPECT_EQ(row.correct, false);
      EXPECT_EQ(row.reason, "truncated");
    } else {
      EXPECT_EQ(row.correct, loses ? std::nullopt : std::optional(wins)) << row.response;
    }
    right += row.correct.value_or(false);
    failed += !row.correct;
  }
  ASSERT_GT(right, 0);
  ASSERT_GT(failed, 0);
  ASSERT_GT(cut, 0);
  const Json& bench = summary["benches"]["wins"];
  EXPECT_EQ(bench["grader_failed"], failed);
  EXPECT_EQ(bench["truncated"], static_cast<double>(cut) / 36);
  EXPECT_EQ(bench["problems"], 9);
  EXPECT_EQ(bench["n"], 4);
  EXPECT_EQ(bench["pass"]["1"], bench["avg"]);
  EXPECT_EQ(summary["average"],
            (bench["avg"].get<double>() + summary["benches"]["more"]["avg"].get<double>()) / 2);
}

TEST_F(Eval, GoesOnAsIfItHadNeverStopped) {
  ASSERT_EQ(eval("whole").status, 0);
  fs::create_directories(folder_ / "part");
  fs::copy(folder_ / "whole/settings.json", folder_ / "part/settings.json");
  // Two problems, half of a third, and an incomplete line.
  const std::string rows = bytes("whole/wins.jsonl");
  std::size_t end = 0;
  for (int line = 0; line < 10; ++line)
    end = rows.find('\n', end) + 1;
  write_file_atomically(folder_ / "part/wins.jsonl", rows.substr(0, end + 17));
  const Outcome outcome = eval("part");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* file : {"wins.jsonl", "more.jsonl", "summary.json", "settings.json"})
    EXPECT_EQ(bytes(std::string("part/") + file), bytes(std::string("whole/") + file)) << file;
}

TEST_F(Eval, IsNotMadeTwiceUnlessAsked) {
  ASSERT_EQ(eval("a").status, 0);
  const auto written = fs::last_write_time(folder_ / "a/wins.jsonl");
  const std::string before = bytes("a/wins.jsonl");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(eval("a").status, 0);
  EXPECT_EQ(fs::last_write_time(folder_ / "a/wins.jsonl"), written);
  ASSERT_EQ(eval("a", "--again").status, 0);
  EXPECT_NE(fs::last_write_time(folder_ / "a/wins.jsonl"), written);
  EXPECT_EQ(bytes("a/wins.jsonl"), before);
  const Outcome other = eval("a", "eval.temperature=0.5 --seed 3");
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("temperature was 1.0 and is 0.5"),
                               HasSubstr("seed was 0 and is 3"), HasSubstr("--again")));
  EXPECT_EQ(bytes("a/wins.jsonl"), before);
  ASSERT_EQ(eval("a", "eval.temperature=0.5 --again").status, 0);
  EXPECT_NE(bytes("a/wins.jsonl"), before);
}

TEST_F(Eval, ASignalKeepsWhatIsGraded) {
  setenv("GRADING_SECONDS", "0.1", 1);
  EXPECT_EQ(stopped_at("a/wins.jsonl", arguments("a")), 130) << read_file(folder_ / "err");
  unsetenv("GRADING_SECONDS");
  EXPECT_FALSE(fs::exists(folder_ / "a/summary.json"));
  EXPECT_EQ(bytes("out"), "");
  ASSERT_EQ(eval("a").status, 0);
  ASSERT_EQ(eval("b").status, 0);
  EXPECT_EQ(bytes("a/wins.jsonl"), bytes("b/wins.jsonl"));
}

TEST_F(Eval, ComparesProblemByProblem) {
  ASSERT_EQ(eval("a").status, 0);
  const Outcome outcome =
      eval("b", fmt::format("--seed 1 --compare '{}' --quiet", (folder_ / "a").string()));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json compared = parse_json(outcome.out, "out")["compared"];
  std::vector<ProblemCount> a = count_problems(read_rows(folder_ / "a/wins.jsonl"), 9),
                            b = count_problems(read_rows(folder_ / "b/wins.jsonl"), 9);
  EXPECT_NEAR(compared["benches"]["wins"]["difference"], paired_difference(b, a).mean, 1e-12);
  EXPECT_THAT(eval("b", "--seed 1 --compare nowhere").err, HasSubstr("nowhere/summary.json"));
}

TEST_F(Eval, RefusesWhatCannotBe) {
  const auto refused = [&](const std::string& more) {
    const Outcome outcome = eval("x", more);
    EXPECT_EQ(outcome.status, 2) << more;
    return outcome.err;
  };
  EXPECT_THAT(refused("eval.benches=win"), HasSubstr("did you mean 'wins'?"));
  EXPECT_THAT(refused("eval.benches=[]"), HasSubstr("no benchmark is named"));
  EXPECT_THAT(refused("eval.n.default=0"), HasSubstr("eval.n"));
  EXPECT_THAT(refused("eval.benches=gone.jsonl"), HasSubstr("gone.jsonl"));
  EXPECT_THAT(refused("eval.max_sequence_tokens=3"), HasSubstr("leaves none of 3"));
  write_file_atomically(folder_ / "empty.jsonl", "");
  EXPECT_THAT(refused("eval.benches=empty"), HasSubstr("empty.jsonl"));
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

TEST_F(Eval, InsideTrainingItFillsTheStepsRow) {
  const Outcome outcome =
      train("run", "checkpoint.every=2 checkpoint.keep_best=val-core/wins/acc/mean@4");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("there is no metric")));
  const std::vector<Json> rows = metrics("run");
  ASSERT_EQ(rows.size(), 5u);
  for (std::size_t step = 0; step < rows.size(); ++step) {
    EXPECT_EQ(rows[step]["training/global_step"], step);
    EXPECT_EQ(rows[step].contains("val-core/wins/acc/mean@4"), step % 2 == 0) << step;
    EXPECT_EQ(rows[step].contains("val-core/more/acc/pass@2"), step % 2 == 0) << step;
    if (step % 2 != 0) continue;
    const EvalSummary summary =
        read_summary(folder_ / fmt::format("run/eval/step-{:06}/summary.json", step));
    EXPECT_EQ(summary.step, step);
    EXPECT_EQ(rows[step]["val-core/wins/acc/mean@4"], summary.find("wins")->avg);
  }
  // The command finds the same for the checkpoint, with the run's own settings and folder.
  const std::string before = bytes("run/eval/step-000004/wins.jsonl");
  const std::string checkpoint = (folder_ / "run/checkpoints/step-000004").string();
  const Outcome again = run(fmt::format("eval '{}' --again", checkpoint));
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(bytes("run/eval/step-000004/wins.jsonl"), before);
}

TEST_F(Eval, InsideTrainingItsPeakIsSaved) {
  const std::string settings = "checkpoint.every=0 checkpoint.keep_best=val-core/wins/acc/mean@4";
  ASSERT_EQ(train("run", settings).status, 0);
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/step-000002"));  // the best so far
  const Json state = Json::parse(bytes("run/checkpoints/step-000004/state.json"));
  const std::vector<Json> rows = metrics("run");
  const auto found = [&](std::size_t step) { return rows[step]["val-core/wins/acc/mean@4"]; };
  EXPECT_EQ(state["best"]["step"], found(4) > found(2) ? 4 : 2);
}

TEST_F(Eval, InsideTrainingItChangesNothing) {
  ASSERT_EQ(train("with", "checkpoint.every=2").status, 0);
  ASSERT_EQ(train("without", "checkpoint.every=2 eval.benches=[]").status, 0);
  EXPECT_EQ(bytes("with/checkpoints/step-000004/model/model.safetensors"),
            bytes("without/checkpoints/step-000004/model/model.safetensors"));
  EXPECT_EQ(bytes("with/rollouts/step-000004.jsonl"), bytes("without/rollouts/step-000004.jsonl"));
}

TEST_F(Eval, InsideTrainingItSurvivesAStop) {
  ASSERT_EQ(train("whole", "checkpoint.every=2").status, 0);
  // As after a signal during the evaluation of step 2: its row has no evaluation.
  ASSERT_EQ(train("part", "checkpoint.every=2 train.steps=2").status, 0);
  fs::remove(folder_ / "part/eval/step-000002/summary.json");
  const std::string rows = bytes("part/eval/step-000002/wins.jsonl");
  write_file_atomically(folder_ / "part/eval/step-000002/wins.jsonl",
                        rows.substr(0, rows.size() / 2));
  std::string kept;
  JsonlReader reader(folder_ / "part/metrics.jsonl");
  for (Json row; reader.next(row);) {
    if (row["training/global_step"] == 2) {
      for (auto it = row.begin(); it != row.end();)
        it = it.key().starts_with("val-") || it.key() == "timing_s/eval" ? row.erase(it)
                                                                         : std::next(it);
    }
    kept += to_json_line(row) + "\n";
  }
  write_file_atomically(folder_ / "part/metrics.jsonl", kept);
  const Outcome outcome = train("part", "checkpoint.every=2 --resume");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(metrics("part"), metrics("whole"));
  for (const char* file :
       {"eval/step-000002/wins.jsonl", "eval/step-000004/more.jsonl",
        "eval/step-000002/summary.json", "checkpoints/step-000004/model/model.safetensors"})
    EXPECT_EQ(bytes(std::string("part/") + file), bytes(std::string("whole/") + file)) << file;
}

// The signal comes after the last step: the run is then stopped, not finished, and the later
// evaluation is added to the row and the checkpoint.
TEST_F(Eval, ASignalInTheLastEvaluationOfTrainingLeavesItToBeDone) {
  const std::string settings =
      "eval.every=4 checkpoint.every=0 checkpoint.keep_best=val-core/wins/acc/mean@4 ";
  ASSERT_EQ(train("whole", settings).status, 0);
  setenv("GRADING_SECONDS", "0.03", 1);
  EXPECT_EQ(stopped_at("part/eval/step-000004/wins.jsonl", train_arguments("part", settings)), 130)
      << read_file(folder_ / "err");
  unsetenv("GRADING_SECONDS");
  EXPECT_FALSE(fs::exists(folder_ / "part/eval/step-000004/summary.json"));
  EXPECT_EQ(Json::parse(bytes("part/run.json"))["exit_reason"], "stopped by a signal");
  EXPECT_EQ(bytes("part/checkpoints/step-000004/model/model.safetensors"),
            bytes("whole/checkpoints/step-000004/model/model.safetensors"));
  EXPECT_FALSE(metrics("part").back().contains("val-core/wins/acc/mean@4"));

  ASSERT_EQ(train("part", settings + "--resume").status, 0);
  EXPECT_EQ(metrics("part"), metrics("whole"));
  for (const char* file : {"eval/step-000004/summary.json", "eval/step-000004/wins.jsonl",
                           "checkpoints/step-000004/state.json"})  // with the best step
    EXPECT_EQ(bytes(std::string("part/") + file), bytes(std::string("whole/") + file)) << file;
  EXPECT_EQ(Json::parse(bytes("part/run.json"))["exit_reason"], "finished");
}

TEST_F(Eval, RanksGiveTheRowsOfOneProcess) {
  const Outcome one = eval("one"), three = eval("three", "--processes 3");
  ASSERT_EQ(three.status, 0) << three.err;
  for (const char* file : {"wins.jsonl", "more.jsonl", "summary.json"})
    EXPECT_EQ(read_file(folder_ / "three" / file), read_file(folder_ / "one" / file)) << file;
  EXPECT_EQ(three.out, one.out);
}

}  // namespace
}  // namespace antisd::inline cli
