#include "eval/results/comparison.h"

#include <cmath>
#include <map>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd::inline eval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

using Scores = std::vector<std::pair<std::string, double>>;

EvalSummary summary_of(const Scores& scores) {
  EvalSummary summary;
  for (const auto& [name, avg] : scores)
    summary.benches.emplace_back(
        name, BenchSummary{.problems = 30,
                           .n = 2,
                           .samples = 60,
                           .avg = avg,
                           .avg_interval = {avg - 0.1, avg + 0.1},
                           .pass = {avg, avg + 0.05},
                           .pass_interval = {{avg - 0.1, avg + 0.1}, {avg, avg + 0.1}}});
  summarise_average(summary);
  return summary;
}

RunResults run_of(const std::string& name, const std::string& method,
                  const std::vector<std::pair<std::int64_t, Scores>>& steps) {
  RunResults run{.name = name, .method = method, .model = "m"};
  for (const auto& [step, scores] : steps)
    run.evaluations.push_back({step, summary_of(scores)});
  return run;
}

// GRPO peaks at step 200 with 0.574; AntiSD reaches that at 30 and peaks at 40, twice.
std::vector<RunResults> paper_runs() {
  return {run_of("grpo", "grpo",
                 {{0, {{"a", 0.3}, {"b", 0.4}}},
                  {100, {{"a", 0.4}, {"b", 0.6}}},
                  {200, {{"a", 0.474}, {"b", 0.674}}}}),
          run_of("anti_sd", "antisd",
                 {{0, {{"a", 0.3}, {"b", 0.4}}},
                  {10, {{"a", 0.3}, {"b", 0.5}}},
                  {30, {{"a", 0.474}, {"b", 0.674}}},
                  {40, {{"a", 0.5}, {"b", 0.8}}},
                  {50, {{"a", 0.55}, {"b", 0.75}}}}),
          run_of("sd", "sd", {{0, {{"a", 0.3}, {"b", 0.4}}}, {10, {{"a", 0.2}, {"b", 0.1}}}})};
}

TEST(CompareRuns, EqualsHandWork) {
  const Comparison comparison = compare_runs(paper_runs());
  EXPECT_THAT(comparison.benches, ElementsAre("a", "b"));
  EXPECT_EQ(comparison.rows[2].baseline, "grpo");
  ASSERT_EQ(comparison.rows.size(), 4u);
  EXPECT_EQ(comparison.rows[0].name, "base");
  EXPECT_NEAR(comparison.rows[0].peak->average, 0.35, 1e-12);
  EXPECT_EQ(comparison.rows[1].step, 200);
  EXPECT_EQ(comparison.rows[1].speedup, "1.0");
  EXPECT_EQ(comparison.rows[2].step, 40);  // the first of two maxima
  EXPECT_EQ(comparison.rows[2].speedup, "6.7");
  EXPECT_EQ(comparison.rows[3].step, 10);  // step 0 is the base model
  EXPECT_EQ(comparison.rows[3].speedup, "x");
  EXPECT_FALSE(comparison.rows[3].partial);
}

TEST(CompareRuns, PairsRunsOfOneModelAndSeed) {
  std::vector<RunResults> runs;
  const auto add = [&](const char* method, const char* model, const char* seed,
                       std::vector<std::pair<std::int64_t, double>> curve) {
    std::vector<std::pair<std::int64_t, Scores>> evaluations;
    for (const auto& [step, accuracy] : curve)
      evaluations.push_back({step, {{"a", accuracy}}});
    runs.push_back(run_of(std::string(method) + model + seed, method, evaluations));
    runs.back().model = model;
    runs.back().seed = seed;
  };
  add("grpo", "m", "0", {{10, 0.2}, {20, 0.9}});
  add("grpo", "m", "1", {{10, 0.2}, {20, 0.3}});
  add("grpo", "n", "0", {{40, 0.1}});
  add("antisd", "m", "1", {{10, 0.4}});
  add("antisd", "n", "7", {{10, 0.4}});
  add("antisd", "other", "1", {{10, 0.4}});
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison.rows[3].baseline, "grpom1");
  EXPECT_EQ(comparison.rows[3].speedup, "2.0");
  EXPECT_EQ(comparison.rows[4].baseline, "grpon0");
  EXPECT_EQ(comparison.rows[4].speedup, "4.0");
  EXPECT_EQ(comparison.rows[5].baseline, "grpom0");
  EXPECT_EQ(comparison.rows[5].speedup, "x");
}

TEST(CompareRuns, ABaselineHasABenchmarkInCommon) {
  const std::vector<RunResults> runs = {
      run_of("code-grpo", "grpo", {{50, {{"humaneval", 0.7}}}}),
      run_of("begun", "grpo", {{0, {{"aime", 0.1}}}}),  // no evaluation after step 0 yet
      run_of("grpo", "grpo", {{50, {{"aime", 0.2}}}, {100, {{"aime", 0.4}}}}),
      run_of("antisd", "antisd", {{25, {{"aime", 0.5}}}}),
      run_of("code-antisd", "antisd", {{25, {{"humaneval", 0.8}}}}),
      run_of("other", "antisd", {{25, {{"gsm", 0.8}}}})};
  const Comparison comparison = compare_runs(runs);
  std::map<std::string, std::pair<std::string, std::string>> found;
  for (const ComparisonRow& row : comparison.rows)
    found[row.name] = {row.baseline, row.speedup};
  EXPECT_THAT(found["antisd"], Pair("grpo", "4.0"));
  EXPECT_THAT(found["code-antisd"], Pair("code-grpo", "2.0"));
  EXPECT_THAT(found["grpo"], Pair("grpo", "1.0"));
  EXPECT_THAT(found["other"], Pair("", "-"));
}

// Among GRPO runs of one model and seed: the one that started from the same weights, then the one
// with more common benchmarks.
TEST(CompareRuns, ABaselineBeganWhereTheRunBegan) {
  std::vector<RunResults> runs = {run_of("grpo-longer", "grpo", {{50, {{"a", 0.6}}}}),
                                  run_of("grpo", "grpo", {{100, {{"a", 0.4}}}}),
                                  run_of("grpo-both", "grpo", {{80, {{"a", 0.5}, {"b", 0.5}}}}),
                                  run_of("antisd", "antisd", {{25, {{"a", 0.7}}}}),
                                  run_of("antisd-both", "antisd", {{20, {{"a", 0.7}, {"b", 0.6}}}}),
                                  run_of("continual", "antisd", {{25, {{"a", 0.7}}}})};
  runs[0].init_from = runs[5].init_from = "runs/grpo";
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison.rows[3].baseline, "grpo");
  EXPECT_EQ(comparison.rows[4].baseline, "grpo-both");
  EXPECT_EQ(comparison.rows[5].baseline, "grpo-longer");
}

TEST(CompareRuns, TheBaseIsNoRunThatWentOnFromAnother) {
  std::vector<RunResults> runs = {
      run_of("continual", "antisd", {{0, {{"a", 0.6}}}, {50, {{"a", 0.7}}}}),
      run_of("grpo", "grpo", {{0, {{"a", 0.3}}}, {200, {{"a", 0.6}}}})};
  runs[0].init_from = "runs/grpo";
  const Comparison comparison = compare_runs(runs);
  ASSERT_EQ(comparison.rows.size(), 3u);
  EXPECT_EQ(comparison.rows[0].name, "base");
  EXPECT_EQ(comparison.rows[0].peak->average, 0.3);
  runs.pop_back();  // none started from the model itself: no base row
  EXPECT_EQ(compare_runs(runs).rows[0].name, "continual");
}

TEST(CompareRuns, MarksAveragesOverOtherBenchmarks) {
  std::vector<RunResults> runs = {
      run_of("grpo", "grpo", {{10, {{"a", 0.2}, {"b", 0.8}}}, {20, {{"a", 0.4}, {"b", 0.5}}}}),
      run_of("only a", "antisd", {{5, {{"a", 0.45}}}}),
      run_of("only c", "antisd", {{5, {{"c", 0.9}}}}), run_of("none", "", {})};
  const Comparison comparison = compare_runs(runs);
  EXPECT_THAT(comparison.benches, ElementsAre("a", "b", "c"));
  EXPECT_EQ(comparison.rows[0].step, 10);
  EXPECT_TRUE(comparison.rows[0].partial);
  EXPECT_EQ(comparison.rows[1].speedup, "4.0");  // over only a, GRPO is best at 20
  EXPECT_TRUE(comparison.rows[1].speedup_partial);
  EXPECT_EQ(comparison.rows[2].speedup, "-");
  EXPECT_FALSE(comparison.rows[3].peak);
  const std::string text = comparison_text(comparison);
  EXPECT_THAT(text, HasSubstr("45.0*"));
  EXPECT_THAT(text, HasSubstr("* over fewer benchmarks"));
  EXPECT_THAT(comparison_latex(comparison), HasSubstr("% * over fewer"));
}

TEST(CompareRuns, LeavesOutAnEvaluationThatLacksABenchmark) {
  const Comparison comparison =
      compare_runs({run_of("r", "antisd", {{10, {{"a", 0.9}}}, {20, {{"a", 0.4}, {"b", 0.5}}}})});
  EXPECT_EQ(comparison.rows[0].step, 20);
  EXPECT_THAT(comparison_text(comparison), HasSubstr("step 10 lacks a benchmark"));
  EXPECT_EQ(comparison.rows[0].speedup, "-");
  EXPECT_EQ(compare_runs({}).rows.size(), 0u);
}

TEST(ComparisonText, IsATable) {
  const std::string text = comparison_text(compare_runs(paper_runs()));
  EXPECT_THAT(text,
              HasSubstr("run      method     a     b  average          95 %  step  speedup\n"));
  EXPECT_THAT(text,
              HasSubstr("anti_sd  antisd  50.0  80.0     65.0  [57.9, 72.1]    40      6.7\n"));
  EXPECT_THAT(text, HasSubstr("pass@k"));
}

TEST(ComparisonCsv, QuotesNames) {
  std::vector<RunResults> runs = {run_of("a,\"b\"", "grpo", {{10, {{"x", 0.25}}}})};
  const std::string csv = comparison_csv(compare_runs(runs));
  EXPECT_THAT(csv, HasSubstr("\"a,\"\"b\"\"\",grpo,10,x,30,2,0.25,0.15,0.35,,,,0,\n"));
  EXPECT_THAT(csv, HasSubstr(",grpo,10,average,,,0.25,0.15,0.35,,,,,1.0\n"));
  EXPECT_THAT(pass_curves_csv(compare_runs(runs)), HasSubstr(",grpo,10,x,2,0.3,0.25,0.35\n"));
}

TEST(ComparisonLatex, EscapesNamesAndSetsTheBestBold) {
  std::vector<RunResults> runs = paper_runs();
  runs[1].name = "anti_sd & 100% $x$ \\n";
  const std::string tex = comparison_latex(compare_runs(runs));
  EXPECT_THAT(
      tex,
      HasSubstr("anti\\_sd \\& 100\\% \\$x\\$ \\textbackslash{}n & "
                "\\textbf{50.0} & \\textbf{80.0} & \\textbf{65.0}$_{40}$ & 6.7$\\times$ \\\\\n"));
  EXPECT_THAT(tex, HasSubstr("sd & 20.0 & 10.0 & 15.0$_{10}$ & $\\times$ \\\\\n"));
  EXPECT_THAT(tex, HasSubstr("\\toprule"));
}

TEST(RunResults, ReadWhatIsWholeAndNoteTheRest) {
  testing::TemporaryFolder folder;
  const auto put = [&](const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder / "my run" / file;
    std::filesystem::create_directories(path.parent_path());
    write_file_atomically(path, text);
  };
  put("config.toml",
      "[method]\nname = \"grpo\"\n[model]\npath = \"m\"\n[train]\nseed = 3\n"
      "init_from = \"runs/grpo\"\n");
  put("run.json", "{\"method\":\"antisd\"}");
  put("eval/step-000010/summary.json", to_json_line(to_json(summary_of({{"a", 0.5}}))));
  put("eval/step-000000/summary.json", to_json_line(to_json(summary_of({{"a", 0.25}}))));
  put("eval/step-000020/summary.json", "{\"benches\":");
  put("eval/step-000030/a.jsonl", "");
  put("eval/notes/summary.json", "{}");
  const RunResults run = read_run_results(folder / "my run/");
  EXPECT_EQ(run.name, "my run");
  EXPECT_EQ(run.method, "antisd");
  EXPECT_EQ(run.model, "m");
  EXPECT_EQ(run.seed, "3");
  EXPECT_EQ(run.init_from, "runs/grpo");
  ASSERT_EQ(run.evaluations.size(), 2u);
  EXPECT_EQ(run.evaluations[0].step, 0);
  EXPECT_EQ(run.evaluations[1].summary.average, 0.5);
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_THAT(run.notes[0], HasSubstr("step-000020"));
  EXPECT_THAT(testing::error_of([&] { read_run_results(folder / "nothing"); }),
              HasSubstr("there is no run directory"));
  std::filesystem::create_directories(folder / "empty");
  EXPECT_THAT(read_run_results(folder / "empty").notes, IsEmpty());
}

}  // namespace
}  // namespace antisd::inline eval
