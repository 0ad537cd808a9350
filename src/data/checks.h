// Checks of a data set before it is used: duplicates, empty answers, over-long prompts, and
// problems of a benchmark among the training problems.
//
//   const DataReport report = check_data({"train.jsonl"}, {.against = {"aime24.jsonl"}});
//   fmt::print("{}", report.text());
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/problem.h"

namespace antisd::inline data {

struct CheckOptions {
  ColumnMap map;                              // of the checked files; benchmarks are native
  std::vector<std::string> against;           // benchmark files
  std::int64_t max_prompt_characters = 8192;  // used if there is no token counter
  std::int64_t max_prompt_tokens = 2048;
  std::function<std::int64_t(const Problem&)> count_tokens;
  double near_duplicate = 0.6;  // share of 5-grams above which a benchmark problem counts as found
  std::size_t examples = 5;     // ids named per finding
};

struct Finding {
  std::int64_t count = 0;
  std::vector<std::string> examples;  // ids, or "id = id" for pairs
};

struct BenchmarkMatch {
  std::string benchmark_id, row_id;
  bool exact = false;
  double containment = 0.0;
};

struct BenchmarkOverlap {
  std::string file;
  std::int64_t problems = 0;
  std::int64_t exact = 0;  // benchmark problems with an equal text among the rows
  std::int64_t near = 0;   // further ones above the threshold
  std::int64_t rows = 0;   // rows to remove: equal to, or near, some benchmark problem
  std::vector<BenchmarkMatch> matches;
};

struct DataReport {
  std::vector<std::pair<std::string, std::int64_t>> files;  // with their number of rows
  std::int64_t rows = 0;
  Finding duplicates;           // rows whose problem occurred before
  Finding conflicting_answers;  // duplicates whose answer differs from the first one's
  Finding repeated_ids;
  Finding empty_answers;  // rows without tests whose answer is blank
  Finding long_prompts;
  std::string long_limit;           // "8192 characters" or "2048 tokens"
  std::int64_t longest_prompt = 0;  // in the unit of long_limit
  double near_duplicate = 0.0;
  std::vector<BenchmarkOverlap> overlaps;
  std::vector<std::string> notes;  // which columns were read under other names

  bool clean() const;  // no findings
  std::string text() const;
  Json to_json() const;
};

// InputError as PromptSet::load; a missing answer column counts as empty answers.
DataReport check_data(const std::vector<std::string>& files, const CheckOptions& options = {});

}  // namespace antisd::inline data
