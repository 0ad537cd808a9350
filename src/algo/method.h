// Methods as data. A method is one row of a table with the configuration's numbers; nothing else in
// the trainer depends on its name.
//
//   const Method method = resolve_method(config.method, config.loss);
//   if (method.needs_teacher()) ...
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "algo/gate.h"
#include "algo/token_divergence.h"
#include "config/run_config.h"

namespace antisd::inline algo {

enum class Divergence { kJsd, kKl };  // phi(u), or u itself
enum class Composition { kAdditive, kMultiplicative };
enum class LambdaRule { kConstant, kPerplexity };

// What a method's name fixes. The configuration decides where an optional is empty.
struct MethodRow {
  std::string_view name;
  std::string_view formula;     // of A_{i,t}
  bool group_advantage = true;  // A is part of the sum
  int sign = 0;                 // of the term: +1 descends the divergence, -1 ascends, 0 has none
  bool gated = false;           // warm-up and gate as configured; else open from step 0
  bool teacher = true;          // false: u = -s
  bool distils = false;         // a divergence as the loss instead of an advantage
  std::optional<Divergence> divergence = {};
  std::optional<Composition> composition = {};
  std::optional<GateSignal> signal = {};
  std::optional<double> close = {};
  std::optional<double> band_close = {};  // unless the configuration sets one
};

std::span<const MethodRow> method_table();

struct Method {
  std::string_view name;
  bool group_advantage = true;
  int sign = 0;
  bool gated = false;  // from the row: [method.gate] and [method.signal] apply
  bool teacher = true;
  bool distils = false;
  Divergence divergence = Divergence::kJsd;
  Composition composition = Composition::kAdditive;
  LambdaRule lambda_rule = LambdaRule::kConstant;
  double lambda_max = 0;
  double lambda_slope = 0;
  GateRules gate;
  SignalConfig signal;
  DivergenceRules distillation;  // where it distils
  double teacher_ema = 0;        // of sdpo
  bool other_teacher = false;    // method.teacher.path is set
  PenaltyConfig penalty;
  double bonus = 0;  // of the tokens in Shaping::bonus_ids
  LossConfig loss;

  // Whether t is part of the advantage, so that the teacher is scored before the update.
  bool scores_teacher() const { return sign != 0 && teacher; }
  // Whether a step needs contexts and a pass over them.
  bool needs_teacher() const { return distils || scores_teacher(); }
  // Whether the teacher has its own weights.
  bool slow_teacher() const { return distils && teacher_ema > 0; }
  // Whether the teacher's weights change while a step's mini-batches are applied.
  bool teacher_moves() const { return !slow_teacher() && !other_teacher; }
  // Whether the gate reads the student's scores, so that the student is scored before the update.
  // (Several mini-batches or epochs need that too.)
  bool gates_on_student() const {
    return gate.signal == GateSignal::kStudentPerplexity ||
           (gate.signal == GateSignal::kEntropy && !teacher);
  }
};

// InputError for a name that is not in the table.
Method resolve_method(const MethodConfig& config, const LossConfig& loss);

// A description for the log: the formula, the weight and the gate.
std::string method_text(const Method& method);

// A caution if a gated term has no limit on the length of the responses it acts on, which on
// countdown led to endless text (docs/evidence.md); "" if it has a limit or no weight.
std::string unbounded_term_text(const Method& method, std::int64_t max_sequence_tokens);

}  // namespace antisd::inline algo
