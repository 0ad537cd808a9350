// Methods as data. A method is one row of a table and the configuration's numbers; nothing else in
// the trainer asks which method it runs.
//
//   const Method method = resolve_method(config.method, config.loss);
//   if (method.needs_teacher()) ...
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "algo/gate.h"
#include "config/run_config.h"

namespace antisd::inline algo {

enum class Shape { kJsd, kKl };  // phi(u), or u itself
enum class Composition { kAdditive, kMultiplicative };
enum class LambdaRule { kConstant, kPerplexity };

// What a method's name fixes. An empty optional is left to the configuration.
struct MethodRow {
  std::string_view name;
  std::string_view formula;     // of A_{i,t}
  bool group_advantage = true;  // A is in the sum
  int sign = 0;                 // of the term: +1 descends the divergence, -1 ascends, 0 has none
  bool gated = false;           // warm-up and gate as configured; else open from the first step
  bool teacher = true;          // false: u = -s
  bool distils = false;         // SDPO's loss instead of an advantage
  std::optional<Shape> shape = {};
  std::optional<Composition> composition = {};
  std::optional<GateSignal> signal = {};
  std::optional<double> close = {};
  std::optional<double> band_close = {};  // where the configuration gives none
};

std::span<const MethodRow> method_table();

struct Method {
  std::string_view name;
  bool group_advantage = true;
  int sign = 0;
  bool gated = false;  // the row's: [method.gate] and [method.signal] hold for it
  bool teacher = true;
  bool distils = false;
  Shape shape = Shape::kJsd;
  Composition composition = Composition::kAdditive;
  LambdaRule lambda_rule = LambdaRule::kConstant;
  double lambda_max = 0;
  double lambda_slope = 0;
  GateRules gate;
  SignalConfig signal;
  SdpoConfig sdpo;
  LossConfig loss;

  // Whether t is part of the advantage, so that the teacher is scored before the update.
  bool scores_teacher() const { return sign != 0 && teacher; }
  // Whether a step needs contexts and a pass over them.
  bool needs_teacher() const { return distils || scores_teacher(); }
  // Whether the teacher has weights of its own.
  bool slow_teacher() const { return distils && sdpo.teacher_ema > 0; }
  // Whether the gate reads the student, so that it has to be scored before the update. (Several
  // mini-batches or epochs need that too.)
  bool gates_on_student() const {
    return gate.signal == GateSignal::kStudentPerplexity ||
           (gate.signal == GateSignal::kEntropy && !teacher);
  }
};

// InputError for a name that is not in the table.
Method resolve_method(const MethodConfig& config, const LossConfig& loss);

// What it does, in words: the formula, the weight and the gate.
std::string method_text(const Method& method);

// What to say where a gated term has no bound on the length of the responses that it acts on, which
// on countdown ended in text that never ends (docs/evidence.md); "" where it has one, or no weight.
std::string unbounded_term_text(const Method& method, std::int64_t max_sequence_tokens);

}  // namespace antisd::inline algo
