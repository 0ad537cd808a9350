// A benchmark: problems, which grader they need, and how often each is sampled.
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
  std::int64_t without_tests = 0;  // code rows that were left out because they have none
};

// `name_or_path`: what contains a slash or ends like a data file is a path, countdown:... problems
// of the built-in task; anything else is the name of a file in eval.dir. Code is graded where rows
// have tests; known benchmarks of mathematics are graded so; everything else by reward.kind.
// InputError for a file that is missing (naming the nearest that is there), empty, or holds a row
// that its grader cannot use.
Benchmark load_benchmark(const std::string& name_or_path, const RunConfig& config);
// InputError for an entry of eval.n that no benchmark answers to: neither `default`, nor a known
// name, nor one of eval.benches or of the files in eval.dir.
void check_sample_counts(const EvalConfig& config);
// Takes such entries away that come from a run whose benchmarks are not those of now.
void drop_unknown_sample_counts(EvalConfig& config, const IntegerMap& of_run);

// All of eval.benches; InputError where two have the same name, or eval.n names none.
std::vector<Benchmark> load_benchmarks(const RunConfig& config);

// The words around a problem: those of training where the benchmark is graded as training is, else
// those of the grader's task.
std::string benchmark_template(const Benchmark& benchmark, const RunConfig& config);

// One line for each benchmark that has problems in common with training texts; empty for none.
std::vector<std::string> overlap_notes(std::span<const Benchmark> benchmarks,
                                       const std::vector<std::string>& training_files,
                                       const ColumnMap& map);

}  // namespace antisd::inline eval
