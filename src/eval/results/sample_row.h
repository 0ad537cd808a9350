// One sample of an evaluation as a row of <bench>.jsonl: the response, the extracted answer, and
// the verdict, which has three values: a sample whose grader failed is neither right nor wrong.
//
//   {"id":"aime2024-I-1","problem":0,"sample":3,"response":"...","extracted":"204","correct":true,
//    "reason":"","truncated":false,"tokens":812,"settings":"9f0c..."}
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/results/interval.h"
#include "io/json.h"

namespace antisd::inline eval {

struct SampleRow {
  std::string id;            // of the problem
  std::int64_t problem = 0;  // its index in the benchmark, from 0
  std::int64_t sample = 0;   // of the problem, from 0
  std::string response;
  std::string extracted;        // the answer found in it; empty if there is none
  std::optional<bool> correct;  // nothing: the grader failed
  std::string reason;           // why it is wrong, or why there is no verdict
  bool truncated = false;       // reached the length limit; wrong whatever it says
  std::int64_t tokens = 0;      // of the response
  std::string settings;         // a hash of everything that the sample depends on

  bool has_no_answer() const { return !truncated && correct.has_value() && extracted.empty(); }
  bool operator==(const SampleRow&) const = default;
};

Json to_json(const SampleRow& row);
// InputError naming `where` for any other object.
SampleRow sample_row_from(const Json& json, const std::string& where);

// Right and graded samples of each problem; `problems` is their number.
std::vector<ProblemCount> count_problems(std::span<const SampleRow> rows, std::int64_t problems);

}  // namespace antisd::inline eval
