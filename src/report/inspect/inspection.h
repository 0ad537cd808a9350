// One response in detail: the student's and teacher's scores of each token, and their effect on the
// token's advantage.
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
  // Its ids, verdict, teacher's prompt, lambda, s and t; entropies may be missing, and so may A if
  // the group is not known.
  Response response;
  std::string source;  // of the solution shown to the teacher, as in the row

  // Set by describe(): readable text.
  std::vector<std::string> tokens;     // of the response, see token_text.h
  std::vector<bool> special;           // which of them are special tokens
  std::string prompt, teacher_prompt;  // special tokens visible

  // Set by weigh(), one per token; NaN if unknown.
  std::vector<double> u;          // t - s
  std::vector<double> phi;        // the method's function of u
  std::vector<double> term;       // what is added to A: -lambda phi for AntiSD, +lambda u for SD
  std::vector<double> advantage;  // A_{i,t}
};

void describe(Inspection& inspection, const Tokenizer& tokenizer);

// Fills u, phi, term and advantage. u is t - s for every method; the rest is the method's own
// arithmetic (algo/shaping.h) with the inspection's lambda and group advantage. `recorded`: token
// advantages from a run, which are then used instead.
void weigh(Inspection& inspection, const Method& method, std::span<const double> recorded = {});

// A row of rollouts/step-NNNNNN.jsonl (docs/runs.md), or one with only its ids.
struct RolloutRow {
  Inspection inspection;                // without describe() and weigh()
  std::vector<double> token_advantage;  // from the run; may be empty
  bool has_scores = false;              // of both student and teacher
  std::optional<std::string> text;      // of the response, if the run recorded it
};

// InputError for an inconsistent row. A row without its own `lambda` gets the given one.
RolloutRow read_rollout_row(const Json& row, double lambda = 0);

// InputError if the tokenizer decodes the row's ids to another text than the run did: it is another
// model's, and every table would show wrong words.
void check_text(const RolloutRow& row, const Tokenizer& tokenizer);

// Whether a row has the columns of a rollout.
bool is_rollout_row(const Json& row);

// The row's scores, with describe() and weigh() applied. The row must have scores.
Inspection recorded_inspection(RolloutRow row, const Tokenizer& tokenizer, const Method& method);

// Columns with one entry per token; `kinds` are indices into a word list's kinds. Numbers are
// rounded to 1e-6; unknown or non-finite values are null.
Json to_json(const Inspection& inspection, std::span<const std::uint8_t> kinds);

// A number in the format of inspect's output.
Json rounded(double value);

}  // namespace antisd::inline report
