// A benchmark: problems, the grader they need, and the samples per problem.
//
//   const Benchmark aime = load_benchmark("aime24", config);       // eval.dir/aime24.jsonl
//   const Benchmark own = load_benchmark("tests/own.jsonl", config);
//
// Rows are native ones (data/problem.h), raw ones of the code data sets (data/code_rows.h), or
// {"numbers", "target"} of the countdown task.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "data/problem.h"

namespace antisd::inline eval {

struct Benchmark {
  std::string name;
  std::filesystem::path file;
  std::string grader;  // a reward.kind
  std::int64_t n = 1;  // samples of each problem
  std::vector<Problem> problems;
  std::int64_t without_tests = 0;  // code rows dropped because they have no tests
  std::vector<std::string> notes;  // ProblemParser::notes()
};

// `name_or_path`: text with a slash or a data file's extension is a path or
// the name of a data set (openai/gsm8k:main/test); countdown:... are
// problems of the built-in task; anything else is the name of a file in eval.dir. Rows with tests
// are graded as code, known mathematics benchmarks as mathematics, everything else by reward.kind.
// InputError for a file that is missing (with the nearest existing name), empty, or has a row that
// its grader cannot use.
Benchmark load_benchmark(const std::string& name_or_path, const RunConfig& config);
// InputError for an entry of eval.n that is neither `default`, a known name, one of eval.benches,
// nor a file in eval.dir.
void check_sample_counts(const EvalConfig& config);
// Removes such entries if they come from a run with other benchmarks.
void drop_unknown_sample_counts(EvalConfig& config, const IntegerMap& of_run);

// All of eval.benches; InputError if two have the same name, or eval.n has an unknown one.
std::vector<Benchmark> load_benchmarks(const RunConfig& config);

// The reward that grades a benchmark: without terms, since samples are correct or not.
RewardConfig benchmark_reward(const Benchmark& benchmark, const RewardConfig& reward);

// The student's template: training's if the benchmark has training's grader, else that of the
// grader's task.
std::string benchmark_template(const Benchmark& benchmark, const RunConfig& config);

// One line for each benchmark that shares problems with the training texts; empty if none does.
std::vector<std::string> overlap_notes(std::span<const Benchmark> benchmarks,
                                       const std::vector<std::string>& training_files,
                                       const ColumnMap& map);

}  // namespace antisd::inline eval
