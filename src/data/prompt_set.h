// The problems of a run, from JSONL, JSON arrays and Parquet, filtered, with a report of what was
// dropped.
//
//   PromptSetReport report;
//   const PromptSet prompts = PromptSet::load({.files = {"dapo.parquet"}, .drop_duplicates = true},
//                                             &report);
//   log(report.text());   // "17917 rows read, 17290 kept; 627 duplicates (dapo-12, ...)"
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/problem.h"

namespace antisd::inline data {

struct PromptSetOptions {
  std::vector<std::string> files;
  ColumnMap map;
  bool require_answer = true;       // see ProblemParser; false if the reward needs no answer
  bool keep_rows = false;           // see ProblemParser
  bool drop_duplicates = false;     // keep only the first with the same normalised problem text
  bool drop_empty_answers = false;  // rows without tests whose answer is blank
  std::int64_t max_prompt_characters = 0;                    // 0: no limit
  std::int64_t max_prompt_tokens = 0;                        // 0: no limit; needs count_tokens
  std::function<std::int64_t(const Problem&)> count_tokens;  // of the prompt as it is rendered
};

struct DroppedRows {
  std::string reason;
  std::int64_t count = 0;
  std::vector<std::string> examples;  // ids of the first few
};

struct PromptSetReport {
  std::int64_t read = 0;
  std::int64_t kept = 0;
  std::vector<std::int64_t> rows_of_files;  // rows read, file by file
  std::vector<DroppedRows> dropped;
  std::vector<std::string> notes;  // ProblemParser::notes()

  std::string text() const;  // one line
};

class PromptSet {
 public:
  // InputError "FILE:LINE: ..." for an unusable row or one whose tokens cannot be counted, and if
  // no row is left. A prompt whose bytes alone make it too long is dropped without counting its
  // tokens.
  static PromptSet load(const PromptSetOptions& options, PromptSetReport* report = nullptr);

  std::size_t size() const { return problems_.size(); }
  const Problem& operator[](std::size_t index) const { return problems_[index]; }
  auto begin() const { return problems_.begin(); }
  auto end() const { return problems_.end(); }

  // 16 hex digits that change with the content or order of the problems.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  std::vector<Problem> problems_;
  std::string fingerprint_;
};

}  // namespace antisd::inline data
