// The rows of one benchmark during an evaluation: <bench>.jsonl grows by complete problems, so a
// stopped evaluation can resume; settings.json beside it holds the settings they were made with.
//
//   BenchRows rows(folder, "aime24", settings, /*problems=*/30, /*n=*/32);
//   if (!rows.has(7)) rows.add(samples_of_problem_7);
//   rows.finish();                                 // in order, as if never stopped
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/results/sample_row.h"
#include "io/json.h"
#include "run/metrics/append_file.h"

namespace antisd::inline eval {

class BenchRows {
 public:
  // `settings` holds everything that the samples depend on. InputError if the folder has rows made
  // with other settings; it names the differences. Partial rows left by a kill are dropped.
  BenchRows(const std::filesystem::path& folder, const std::string& bench, const Json& settings,
            std::int64_t problems, std::int64_t n);

  bool has(std::int64_t problem) const;  // all its samples
  std::int64_t done() const { return static_cast<std::int64_t>(rows_.size()) / n_; }  // problems
  const std::vector<SampleRow>& rows() const { return rows_; }
  const std::string& settings() const { return hash_; }  // for the rows

  // Writes all samples of one problem to the file. RunError.
  void add(std::vector<SampleRow> samples);
  // Writes the file in the order of problems and samples. RunError.
  void finish();

 private:
  void read();
  void write_all();

  std::filesystem::path file_;
  std::string hash_;
  std::int64_t n_;
  std::vector<SampleRow> rows_;
  std::vector<bool> has_;  // by problem
  std::unique_ptr<AppendFile> append_;
};

// The differences between two settings objects, for a message: "temperature was 0.7 and is 1".
std::string settings_difference(const Json& before, const Json& now);

// Removes only the rows, settings and summary of an evaluation.
void remove_evaluation(const std::filesystem::path& folder,
                       const std::vector<std::string>& benches);

// Rows of a finished evaluation. InputError where the file is missing or damaged.
std::vector<SampleRow> read_rows(const std::filesystem::path& file);

}  // namespace antisd::inline eval
