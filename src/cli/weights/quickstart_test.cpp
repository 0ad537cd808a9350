// `quickstart` as a user runs it, made small; how it divides data; what it says when something is
// missing.

#include <csignal>
#include <set>
#include <thread>

#include "cli/command_testing.h"
#include "cli/weights/quick_data.h"
#include "core/error.h"
#include "io/jsonl.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;

class Quickstart : public testing::CommandTest {
 protected:
  Quickstart() {
    fs::create_directory_symlink(fs::path(ANTISD_SOURCE_DIR) / "models", folder_ / "models");
  }

  // Tiny steps on the shipped model.
  Outcome start(const std::string& more) const { return run(command(more)); }
  static std::string command(const std::string& more) {
    return "quickstart --model models/countdown --device cpu --threads 1 " + more +
           " rollout.prompts_per_step=2 rollout.group_size=4 rollout.max_sequence_tokens=136";
  }

  std::vector<std::string> problems(const std::string& file) const {
    std::vector<std::string> texts;
    JsonlReader reader(folder_ / file);
    for (Json row; reader.next(row);)
      texts.push_back(row["problem"]);
    return texts;
  }

  // Rows of the built-in task as a user's file, with a column of the user's own.
  void write_rows(const std::string& name, int count, bool reversed = false) const {
    std::vector<std::string> rows;
    for (int i = 0; i < count; ++i)
      rows.push_back(Json({{"problem", fmt::format("Numbers {} 11 3 target {}", 4 + i, 18 + i)},
                           {"answer", std::to_string(18 + i)},
                           {"level", i}})
                         .dump());
    if (reversed) std::reverse(rows.begin(), rows.end());
    write(name, fmt::format("{}\n", fmt::join(rows, "\n")));
  }
};

TEST_F(Quickstart, TrainsEvaluatesTwiceAndSaysWhatCameOut) {
  const Outcome first = start("--data countdown:3 --dir q --steps 2");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.err, AllOf(HasSubstr("machine   cpu"), HasSubstr("sandbox   "),
                               HasSubstr("training  whole"), HasSubstr("a step if responses"),
                               HasSubstr("2 of 2 problems x 4 responses")));
  EXPECT_THAT(first.out,
              AllOf(HasSubstr("% after 2 steps; difference"), HasSubstr("q/report.html"),
                    HasSubstr("q/run/checkpoints/step-000002/model"), HasSubstr("Next:")));
  EXPECT_EQ(std::count(first.out.begin(), first.out.end(), '\n'), 3);
  EXPECT_TRUE(fs::exists(folder_ / "q/report.html"));
  EXPECT_TRUE(fs::exists(folder_ / "q/run/eval/step-000000/summary.json"));
  EXPECT_THAT(read_file(folder_ / "q/plan.txt"), HasSubstr("keys and values"));

  // Every key has its reason above it, and the file is a configuration.
  std::istringstream lines(read_file(folder_ / "q/run.toml"));
  std::string before;
  int keys = 0;
  for (std::string line; std::getline(lines, line); before = line) {
    if (line.find(" = ") == std::string::npos || line.starts_with('#')) continue;
    EXPECT_TRUE(before.starts_with("# ")) << line;
    ++keys;
  }
  EXPECT_GT(keys, 15);
  EXPECT_EQ(run("config q/run.toml").status, 0);

  const Outcome again = start("--data countdown:3 --dir q");
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err,
              AllOf(HasSubstr("going on with q/run.toml"), HasSubstr("nothing is left")));
  EXPECT_EQ(again.out, first.out);
  const Outcome longer = start("--dir q --steps 3");
  EXPECT_EQ(longer.status, 0) << longer.err;
  EXPECT_THAT(longer.out, HasSubstr("% after 3 steps"));
  const Outcome other = start("--dir q --data countdown:4");
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("it was begun with --data countdown:3; choose another --dir"));
}

TEST_F(Quickstart, AStoppedOneGoesOnWhereItWas) {
  const std::string arguments =
      command("--data countdown:3 --dir q --steps 400 checkpoint.every=1");
  const pid_t pid = launch(arguments);
  for (int i = 0; i < 3000 && !fs::exists(folder_ / "q/run/checkpoints/step-000001"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(pid, SIGTERM);
  EXPECT_EQ(status_of(pid), 130);
  EXPECT_THAT(read_file(folder_ / "err"), HasSubstr("the same command continues"));
  EXPECT_FALSE(fs::exists(folder_ / "q/report.html"));
  const std::string log = read_file(folder_ / "q/run/metrics.jsonl");
  const auto done = std::count(log.begin(), log.end(), '\n');  // row 0 is the first evaluation
  const Outcome again = start(fmt::format("--dir q --steps {}", done + 1));
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("going on from q/run/checkpoints"));
  EXPECT_THAT(read_file(folder_ / "q/run/metrics.jsonl"), ::testing::StartsWith(log));
}

TEST_F(Quickstart, WithoutModelOrDataItOffersWhatWorks) {
  const Outcome model = run("quickstart --dir q");
  EXPECT_EQ(model.status, 2);
  EXPECT_THAT(model.err, AllOf(HasSubstr("Qwen/Qwen3-0.6B: no such folder"),
                               HasSubstr("hf download Qwen/Qwen3-0.6B"), HasSubstr("antisd demo")));
  const Outcome data = run("quickstart --model models/countdown --dir q");
  EXPECT_EQ(data.status, 2);
  EXPECT_THAT(data.err, AllOf(HasSubstr("openai/gsm8k: no such folder"),
                              HasSubstr("hf download openai/gsm8k --repo-type dataset"),
                              HasSubstr("antisd demo")));
  const Outcome rows = run("quickstart --model models/countdown --data rows.jsonl --dir q");
  EXPECT_EQ(rows.status, 2);
  EXPECT_THAT(rows.err, AllOf(HasSubstr("rows.jsonl: no such"), Not(HasSubstr("hf download"))));
  EXPECT_FALSE(fs::exists(folder_ / "q"));
}

TEST_F(Quickstart, DryRunWritesNothing) {
  write_rows("rows.jsonl", 10);
  const Outcome outcome = start("--data rows.jsonl --dir q --dry-run");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("[model]"), HasSubstr("# Given on the command line.\n"
                                                                 "group_size = 4")));
  EXPECT_FALSE(fs::exists(folder_ / "q"));
  write("bare.jsonl", "{\"problem\": \"a\"}\n{\"problem\": \"b\"}\n{\"problem\": \"c\"}\n");
  const Outcome bare = start("--data bare.jsonl --dir q");
  EXPECT_EQ(bare.status, 2);
  EXPECT_THAT(bare.err, HasSubstr("not every row has an answer"));
  EXPECT_FALSE(fs::exists(folder_ / "q"));
  EXPECT_EQ(start("--data countdown:3 --dir rows.jsonl/q --steps 1").status, 1);
}

// The settings are written last, so a later start does not take a part of them for the whole.
TEST_F(Quickstart, AFullDiskLeavesNoHalfOfASetup) {
  write_rows("rows.jsonl", 200);
  const std::string arguments = command(
      "--data rows.jsonl --dir q --steps 1 reward.kind=countdown "
      "data.template=countdown");
  EXPECT_EQ(shell("ulimit -f 8; antisd " + arguments + " >out 2>err"), 1);
  EXPECT_THAT(read_file(folder_ / "err"), HasSubstr("q/data/train.jsonl: "));
  EXPECT_FALSE(fs::exists(folder_ / "q/run.toml"));
  EXPECT_FALSE(fs::exists(folder_ / "q/data/train.jsonl"));
  EXPECT_EQ(run(arguments).status, 0);
}

TEST_F(Quickstart, HoldsOutTheSameProblemsInAnyOrder) {
  write_rows("a.jsonl", 50);
  write_rows("b.jsonl", 50, /*reversed=*/true);
  const auto split = [&](const std::string& name) {
    const QuickSplit split =
        split_quick_data(find_quick_data(path(name + ".jsonl")), {.folder = folder_ / name});
    split.write();
    EXPECT_EQ(split.kind, "math");
    return problems(name + "/held-out.jsonl");
  };
  const std::vector<std::string> held_out = split("a");
  EXPECT_EQ(held_out.size(), 10U);
  EXPECT_EQ(held_out, split("b"));
  std::set<std::string> all(held_out.begin(), held_out.end());
  for (const std::string& text : problems("a/train.jsonl"))
    EXPECT_TRUE(all.insert(text).second) << "on both sides: " << text;
  EXPECT_EQ(all.size(), 50U);
  EXPECT_THAT(read_file(folder_ / "a/train.jsonl"), HasSubstr("\"level\"")) << "columns stay";
}

TEST_F(Quickstart, EqualProblemsStayOnOneSide) {
  std::string rows;
  for (int i = 0; i < 40; ++i)
    rows += fmt::format("{{\"problem\": \"{}Problem {}\", \"answer\": \"1\"}}\n", i % 2 ? " " : "",
                        i / 8);
  const QuickData data{.name = "rows", .train = {write("rows.jsonl", rows)}, .test = {}};
  const QuickSplit split = split_quick_data(data, {.folder = folder_ / "q"});
  split.write();
  const std::vector<std::string> held_out = problems("q/held-out.jsonl");
  EXPECT_EQ(held_out.size() % 8, 0U);
  const std::vector<std::string> train = problems("q/train.jsonl");
  for (const std::string& text : held_out)
    EXPECT_EQ(std::count(train.begin(), train.end(), text), 0) << text;
  const QuickData one{.name = "one",
                      .train = {write("one.jsonl",
                                      "{\"problem\": \"a\", \"answer\": \"1\"}\n"
                                      "{\"problem\": \"A\", \"answer\": \"1\"}\n")},
                      .test = {}};
  EXPECT_THROW(split_quick_data(one, {.folder = folder_ / "q"}), InputError);
}

TEST_F(Quickstart, TakesTheTestSplitOfAFolder) {
  fs::create_directories(folder_ / "set/main");
  write_rows("set/main/train-00000-of-00001.jsonl", 20);
  write("set/main/test-00000-of-00001.jsonl", "{\"problem\": \"x\", \"answer\": \"1\"}\n");
  write("set/README.md", "words");
  const QuickData data = find_quick_data(path("set"));
  const QuickSplit split = split_quick_data(data, {.folder = folder_ / "q"});
  split.write();
  EXPECT_EQ(split.train, std::vector{path("set/main/train-00000-of-00001.jsonl")});
  EXPECT_EQ(problems("q/held-out.jsonl"), std::vector<std::string>{"x"});
  EXPECT_FALSE(fs::exists(folder_ / "q/train.jsonl"));
  fs::remove(folder_ / "set/main/train-00000-of-00001.jsonl");
  EXPECT_THROW(find_quick_data(path("set")), InputError);
}

}  // namespace
}  // namespace antisd::inline cli
