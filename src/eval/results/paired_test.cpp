#include "eval/results/paired.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "eval/results/summary.h"
#include "io/atomic_file.h"

namespace antisd::inline eval {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Verdicts = std::vector<std::pair<std::string, std::optional<bool>>>;  // id and verdict

void put(const std::filesystem::path& folder, const std::string& bench, const Verdicts& verdicts) {
  std::filesystem::create_directories(folder);
  std::string lines;
  std::int64_t problem = 0;
  for (const auto& [id, correct] : verdicts) {
    SampleRow row{.id = id, .problem = problem++, .response = "", .correct = correct};
    lines += to_json_line(to_json(row)) + "\n";
  }
  write_file_atomically(folder / (bench + ".jsonl"), lines);
}

void finish(const std::filesystem::path& folder, const std::vector<std::string>& benches) {
  EvalSummary summary;
  for (const std::string& bench : benches)
    summary.benches.emplace_back(bench, BenchSummary{});
  write_summary(folder / "summary.json", summary);
}

TEST(CompareEvaluations, MatchesProblemsById) {
  testing::TemporaryFolder folder;
  // Two problems of the same id stay separate; w cannot be graded, z is absent from the other side.
  put(folder / "a", "x",
      {{"p", true}, {"q", true}, {"q", false}, {"w", std::nullopt}, {"z", true}});
  put(folder / "b", "x", {{"w", true}, {"q", false}, {"q", false}, {"p", true}});
  put(folder / "a", "y", {{"p", true}, {"q", true}});
  put(folder / "b", "y", {{"p", false}, {"q", true}});
  finish(folder / "a", {"x", "y", "only a"});
  finish(folder / "b", {"y", "x", "only b"});
  const PairedComparison comparison = compare_evaluations(folder / "a", folder / "b");
  ASSERT_EQ(comparison.benches.size(), 2u);
  EXPECT_EQ(comparison.benches[0].second.problems, 3);
  EXPECT_NEAR(comparison.benches[0].second.mean, 1.0 / 3, 1e-12);
  EXPECT_NEAR(comparison.average.mean, (1.0 / 3 + 1.0 / 2) / 2, 1e-12);
  EXPECT_THAT(comparison.missing, ElementsAre("only a", "only b"));
  EXPECT_THAT(paired_text(comparison),
              AllOf(HasSubstr("+33.3"), HasSubstr("only one has only a, only b")));
  EXPECT_EQ(to_json(comparison)["benches"]["x"]["problems"], 3);
}

TEST(CompareEvaluations, NeedsTwoOfTheSame) {
  testing::TemporaryFolder folder;
  put(folder / "a", "x", {{"p", true}});
  finish(folder / "a", {"x"});
  EXPECT_THAT(testing::error_of([&] { compare_evaluations(folder / "a", folder / "none"); }),
              HasSubstr("none"));
  std::filesystem::create_directories(folder / "b");
  finish(folder / "b", {"y"});
  EXPECT_THAT(testing::error_of([&] { compare_evaluations(folder / "a", folder / "b"); }),
              HasSubstr("no benchmark in common"));
}

}  // namespace
}  // namespace antisd::inline eval
