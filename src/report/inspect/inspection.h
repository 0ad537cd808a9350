// One response under the microscope: what student and teacher say of each of its tokens, and what
// that does to the token's advantage.
//
//   Inspection inspection{.id = "aime24-1", .response = response};
//   describe(inspection, tokenizer);  // texts
//   weigh(inspection, method);        // u, phi, term, advantage
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algo/method.h"
#include "algo/response.h"
#include "io/json.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline report {

struct Inspection {
  std::string id;                    // of the problem
  std::optional<std::int64_t> step;  // of a training run
  std::int64_t sample = 0;           // in its group
  std::vector<TokenId> prompt_ids;
  // Its ids, verdict, teacher's prompt, lambda, s and t; entropies may be missing, and A where the
  // group is not known.
  Response response;
  std::string source;  // of the solution shown to the teacher, in the words of the row

  // By describe(): as a person reads them.
  std::vector<std::string> tokens;     // of the response, see token_text.h
  std::vector<bool> special;           // which of them are special tokens
  std::string prompt, teacher_prompt;  // special tokens visible

  // By weigh(), one per token; NaN where it is not known.
  std::vector<double> u;          // t - s
  std::vector<double> phi;        // what the method makes of u
  std::vector<double> term;       // what is added to A: -lambda phi for AntiSD, +lambda u for SD
  std::vector<double> advantage;  // A_{i,t}
};

void describe(Inspection& inspection, const Tokenizer& tokenizer);

// Fills u, phi, term and advantage. u is t - s whatever the method; the rest is the method's own
// arithmetic (algo/shaping.h) with the inspection's lambda and group advantage. `recorded`: token
// advantages as a run wrote them, which then count.
void weigh(Inspection& inspection, const Method& method, std::span<const double> recorded = {});

// A row of rollouts/step-NNNNNN.jsonl (docs/runs.md), or one with its ids alone.
struct RolloutRow {
  Inspection inspection;                // neither described nor weighed
  std::vector<double> token_advantage;  // as the run wrote it; may be empty
  bool has_scores = false;              // of student and teacher both
  std::optional<std::string> text;      // of the response, where the run wrote it down
};

// InputError for a row that contradicts itself. Without a `lambda` of its own a row gets the given
// one.
RolloutRow read_rollout_row(const Json& row, double lambda = 0);

// InputError where the tokenizer makes another text of the row's ids than the run did: it is
// another model's, and every table would show the wrong words.
void check_text(const RolloutRow& row, const Tokenizer& tokenizer);

// Whether a row has the columns of a rollout.
bool is_rollout_row(const Json& row);

// The scores of the row, described and weighed. The row must have them.
Inspection recorded_inspection(RolloutRow row, const Tokenizer& tokenizer, const Method& method);

// Columns, one entry per token; `kinds` are numbers of a word list's kinds. Numbers are rounded to
// 1e-6; what is not known or not finite is null.
Json to_json(const Inspection& inspection, std::span<const std::uint8_t> kinds);

// A number as every output of inspect has it.
Json rounded(double value);

}  // namespace antisd::inline report
