// Converts data sets between JSONL, CSV, JSON arrays and Parquet, by file ending, and raw rows of
// the known code data sets (data/code_rows.h) and verl's rows into native rows.
//
//   convert_data("HumanEvalPlus.jsonl", "humanevalplus.parquet");
//   show_data("train.parquet", {.limit = 3}, [](const Json& row) { ... });
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "data/problem.h"

namespace antisd::inline data {

struct ConvertOptions {
  enum class Rows {
    kAuto,  // raw code rows and verl's rows become native; others stay
    kCode,  // raw code rows become native; any other row is an error
    kKeep,  // only the file format changes
  };
  Rows rows = Rows::kAuto;
  bool force = false;  // replace an existing output
  ColumnMap map;       // if not empty, every row becomes native through it
  // The number of checks that a row's solution reaches in its tests (not stdio), nothing if it
  // fails them; recorded as tests.checks. Called from `threads` threads.
  std::function<std::optional<int>(const std::string& solution, const Json& tests)> count_checks =
      nullptr;
  int threads = 1;
};

struct ConvertResult {
  std::int64_t rows_read = 0;
  std::int64_t rows_written = 0;
  std::int64_t without_tests = 0;     // code rows dropped because they have no tests
  std::int64_t counted = 0;           // rows whose solution passed, with tests.checks
  std::int64_t failed_solutions = 0;  // rows whose solution fails its own tests
  std::vector<std::string> notes;     // ProblemParser::notes()
};

inline constexpr const char* kStandardOutput = "-";

// The output appears complete or not at all; kStandardOutput writes JSONL to standard output.
// InputError for an ending other than .jsonl, .csv, either with .gz, .parquet or .pq, an existing
// output, or a row that cannot be converted. A CSV file has the columns of the first row.
ConvertResult convert_data(const std::filesystem::path& input, const std::filesystem::path& output,
                           const ConvertOptions& options = {});

struct ShowOptions {
  ColumnMap map;
  std::int64_t limit = 0;                     // 0: all rows
  std::vector<std::string>* notes = nullptr;  // gets ProblemParser::notes()
};

// Passes on the rows as the trainer sees them (to_row). Returns their number.
std::int64_t show_data(const std::filesystem::path& input, const ShowOptions& options,
                       const std::function<void(const Json&)>& emit);

}  // namespace antisd::inline data
