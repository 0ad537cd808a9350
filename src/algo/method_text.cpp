#include <fmt/format.h>

#include "algo/loss_terms.h"
#include "algo/method.h"

namespace antisd::inline algo {
namespace {

std::string entropies_text(const Method& method) {
  const char* whose = method.teacher ? "teacher" : "student";
  switch (method.gate.statistic) {
    case GateStatistic::kMedian:
      return fmt::format("the median of the {}'s entropies", whose);
    case GateStatistic::kMean:
      return fmt::format("the mean of the {}'s entropies", whose);
    case GateStatistic::kAuto:
      break;
  }
  return fmt::format(
      "the median of the {}'s entropies, or their mean where the median is below {} in the warm-up",
      whose, method.gate.min_warm);
}

std::string signal_text(const Method& method) {
  switch (method.gate.signal) {
    case GateSignal::kEntropy:
      return entropies_text(method);
    case GateSignal::kStudentPerplexity:
      return "the student's perplexity";
    case GateSignal::kTeacherPerplexity:
      return "the mean of the teacher's perplexities";
    case GateSignal::kNone:
      break;
  }
  return "nothing";
}

std::string gate_text(const Method& method) {
  const GateRules& gate = method.gate;
  if (gate.signal == GateSignal::kNone) {
    return gate.warmup_steps > 0 ? fmt::format("no gate, {} steps at lambda = 0", gate.warmup_steps)
                                 : "no gate";
  }
  std::string text = fmt::format(
      "the gate watches {}: {} steps of warm-up at lambda = 0, closed below {} x their median",
      signal_text(method), gate.warmup_steps, gate.close);
  if (gate.close_floor > 0) text += fmt::format(" or {}", gate.close_floor);
  text += fmt::format(", open again at {} x", gate.reopen);
  if (gate.band_close > 0) {
    text += fmt::format("; also closed above {} x, open again at {} x", gate.band_close,
                        gate.band_reopen);
  }
  if (gate.previous_step) text += "; the step before decides";
  return text;
}

// What of the objective is not GRPO's.
std::string objective_text(const LossConfig& loss) {
  const LossConfig plain;
  std::string text;
  if (loss.policy == "cispo") text += "; CISPO's weights";
  if (loss.ratio == "sequence") text += "; ratios of whole responses";
  if (loss.aggregation != plain.aggregation) {
    text += "; " + loss.aggregation;
    if (loss.aggregation == "seq-mean-token-sum-norm")
      text += fmt::format(" by {}", loss.norm_tokens);
  }
  if (loss.overlong_filter) text += "; without truncated responses";
  if (loss.rollout_correction != plain.rollout_correction)
    text += fmt::format("; rollout correction {} by {:g}", loss.rollout_correction,
                        loss.rollout_correction_cap);
  return text;
}

}  // namespace

std::string method_text(const Method& method) {
  std::string formula;
  for (const MethodRow& row : method_table())
    if (row.name == method.name) formula = row.formula;
  std::string text = fmt::format("{}: A_t = {}", method.name, formula);
  if (method.distils) {
    text = fmt::format("{}: {}", method.name, method.distillation.text());
    if (method.teacher_ema > 0)
      text += fmt::format("; the teacher follows the weights at rate {}", method.teacher_ema);
  }
  if (method.other_teacher) text += "; the teacher is another model";
  if (method.sign != 0) {
    text += method.lambda_rule == LambdaRule::kPerplexity
                ? fmt::format("; lambda = {} ln(ppl / tau) of each response, at most {}",
                              method.lambda_slope, method.lambda_max)
                : fmt::format("; lambda = {}", method.lambda_max);
    text += "; " + gate_text(method);
  }
  text += objective_text(method.loss);
  for (const LossTerm& term : loss_terms())
    if (const double weight = method.loss.*term.weight; weight > 0)
      text += fmt::format("; + {} {}", weight, term.meaning);
  return text;
}

std::string unbounded_term_text(const Method& method, std::int64_t max_sequence_tokens) {
  const std::int64_t bound = method.signal.max_response_tokens;
  const bool acts = method.gated && method.sign != 0 && method.lambda_max > 0;
  if (!acts || (bound > 0 && bound < max_sequence_tokens)) return "";
  return fmt::format(
      "{}'s term acts on responses of any length (method.signal.max_response_tokens = {}), and on "
      "countdown most such runs ended in text that never ends: the released code leaves it out "
      "from 12,000 of 16,384 tokens on, here method.signal.max_response_tokens={}",
      method.name, bound, max_sequence_tokens * 12'000 / 16'384);
}

}  // namespace antisd::inline algo
