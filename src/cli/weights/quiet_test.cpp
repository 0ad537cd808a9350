// Each command that needs weights, on ordinary input: --quiet leaves standard error empty, and
// without it there is no warning.
#include "cli/weights/train_testing.h"

namespace antisd::inline cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Outcome;

class TrainQuietly : public testing::TrainTest {
 protected:
  TrainQuietly() : TrainTest({"train.steps=2", "method.gate.warmup_steps=1"}) {}

  void expect_quiet(const std::string& line, const std::string& input = "") const {
    const Outcome quiet = run(line + " --quiet", input);
    EXPECT_EQ(quiet.status, 0) << line << quiet.err;
    EXPECT_THAT(quiet.err, IsEmpty()) << line;
  }
};

TEST_F(TrainQuietly, NothingButResults) {
  const std::string place = " --device cpu --threads 1";
  expect_quiet("train run.toml record.dir=a" + place);
  expect_quiet("train run.toml record.dir=never --dry-run" + place);
  expect_quiet("train run.toml record.dir=a train.steps=3 --resume" + place);
  expect_quiet("eval model run.toml eval.benches=problems.jsonl eval.max_sequence_tokens=20 -o e" +
               place);
  expect_quiet("sweep run.toml record.dir=s train.steps=1 --seeds 0,1 --device cpu --threads 1");
  expect_quiet("report a -o report.html");
  expect_quiet("generate model --max-tokens 3" + place, "{\"prompt_ids\":[1,2]}\n");
  expect_quiet("score model" + place, "{\"prompt_ids\":[1,2],\"response_ids\":[3]}\n");
  expect_quiet("inspect model run.toml --problem 'win lose' --answer win --samples 2" + place);
  expect_quiet("plan run.toml model.path=model --device h200");
  expect_quiet("demo --dir d train.steps=1 eval.every=0 rollout.prompts_per_step=2");
}

TEST_F(TrainQuietly, OrdinaryRunsGiveNoWarning) {
  const Outcome demo = run("demo --dir d train.steps=2 eval.every=0 rollout.prompts_per_step=2");
  EXPECT_EQ(demo.status, 0) << demo.err;
  EXPECT_THAT(demo.err, Not(HasSubstr("warning")));
  int logs = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "d")) {
    if (entry.path().filename() != "log.txt") continue;
    EXPECT_THAT(read_file(entry.path()), Not(HasSubstr("max_solution_tokens"))) << entry.path();
    ++logs;
  }
  EXPECT_EQ(logs, 3);
}

// A solution is cut only if it is too long for the model; the first step that cuts says how many.
TEST_F(TrainQuietly, CutSolutionsAreSaidOnceWithTheirNumber) {
  const Outcome whole = train("whole", "context.max_solution_tokens=100000");
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_THAT(whole.err, Not(HasSubstr("max_solution_tokens")));
  std::string solution;
  for (int i = 0; i < 200; ++i)
    solution += fmt::format("{} ", 1 + i % 6);
  std::string rows;
  for (int i = 0; i < 6; ++i)
    rows += Json({{"problem", fmt::format("Numbers {} 2 target 3", 1 + i)},
                  {"answer", "win"},
                  {"solution", solution}})
                .dump() +
            "\n";
  write("long.jsonl", rows);
  const Outcome cut = train("cut", "context.max_solution_tokens=100000 data.train=long.jsonl");
  EXPECT_EQ(cut.status, 0) << cut.err;
  const std::string said = "solutions shown to the teacher were cut";
  const std::size_t at = cut.err.find(said);
  ASSERT_NE(at, std::string::npos) << cut.err;
  EXPECT_EQ(cut.err.find(said, at + 1), std::string::npos) << cut.err;
  EXPECT_THAT(cut.err, ::testing::ContainsRegex("step 1: [0-9]+ of 12 solutions"));
}

}  // namespace
}  // namespace antisd::inline cli
