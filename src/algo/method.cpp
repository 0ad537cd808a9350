#include "algo/method.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/nearest.h"

namespace antisd::inline algo {
namespace {

constexpr auto kTable = std::to_array<MethodRow>({
    {.name = "grpo", .formula = "A"},
    {.name = "sd", .formula = "A + lambda u", .sign = +1, .divergence = Divergence::kKl},
    {.name = "opd",
     .formula = "lambda u",
     .group_advantage = false,
     .sign = +1,
     .divergence = Divergence::kKl},
    {.name = "antisd", .formula = "A - lambda phi(u)", .sign = -1, .gated = true},
    {.name = "sdpo",
     .formula = "no advantage: JSD(S, T)",
     .group_advantage = false,
     .distils = true},

    // The paper's ablations: AntiSD with one setting changed.
    {.name = "antisd-reverse-kl",
     .formula = "A - lambda u",
     .sign = -1,
     .gated = true,
     .divergence = Divergence::kKl},
    {.name = "antisd-no-gate",
     .formula = "A - lambda_max phi(u) after the warm-up",
     .sign = -1,
     .gated = true,
     .signal = GateSignal::kNone},
    {.name = "antisd-close-0.90",
     .formula = "A - lambda phi(u), tau = 0.90 H_warm",
     .sign = -1,
     .gated = true,
     .close = 0.90},
    {.name = "antisd-close-0.95",
     .formula = "A - lambda phi(u), tau = 0.95 H_warm",
     .sign = -1,
     .gated = true,
     .close = 0.95},
    {.name = "antisd-multiplicative",
     .formula = "A (1 - lambda phi(u))",
     .sign = -1,
     .gated = true,
     .composition = Composition::kMultiplicative},
    {.name = "antisd-student-gate",
     .formula = "A - lambda phi(u), S_k = exp(-mean s)",
     .sign = -1,
     .gated = true,
     .signal = GateSignal::kStudentPerplexity},
    {.name = "antisd-no-teacher",
     .formula = "A - lambda phi(-s), S_k of H_S",
     .sign = -1,
     .gated = true,
     .teacher = false,
     .signal = GateSignal::kEntropy},

    // Beyond the paper.
    {.name = "antisd-two-sided",
     .formula = "A - lambda phi(u), the gate closes above 1.07 H_warm too",
     .sign = -1,
     .gated = true,
     .band_close = 1.07},
});

const MethodRow& find_row(const std::string& name) {
  std::vector<std::string> names;
  for (const MethodRow& row : kTable) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  throw InputError(fmt::format("there is no method '{}'", name),
                   {.where = "method.name",
                    .remedy = fmt::format("did you mean '{}'?", nearest_name(name, names))});
}

GateSignal signal_of(const std::string& kind) {
  if (kind == "entropy") return GateSignal::kEntropy;
  if (kind == "student_perplexity") return GateSignal::kStudentPerplexity;
  if (kind == "teacher_perplexity") return GateSignal::kTeacherPerplexity;
  return GateSignal::kNone;
}

GateStatistic statistic_of(const std::string& name) {
  if (name == "median") return GateStatistic::kMedian;
  return name == "mean" ? GateStatistic::kMean : GateStatistic::kAuto;
}

GateRules gate_rules(const MethodRow& row, const GateConfig& config) {
  if (!row.gated) return {};
  return {.signal = row.signal.value_or(signal_of(config.kind)),
          .statistic = statistic_of(config.statistic),
          .warmup_steps = config.warmup_steps,
          .min_warm = config.min_warm,
          .on_too_small = config.on_too_small == "stop" ? OnTooSmall::kStop : OnTooSmall::kOpen,
          .close = row.close.value_or(config.close),
          .close_floor = config.close_floor,
          .reopen = config.reopen,
          .band_close = config.band_close > 0 ? config.band_close : row.band_close.value_or(0),
          .band_reopen = config.band_reopen,
          .max_perplexity = config.max_perplexity,
          .previous_step = config.previous_step};
}

Divergence divergence_of(const MethodRow& row, const MethodConfig& config) {
  const Divergence configured = config.phi == "kl" ? Divergence::kKl : Divergence::kJsd;
  // The released code descends the same divergence that it ascends.
  if (row.name == "sd" && config.preset == "released") return Divergence::kJsd;
  return row.divergence.value_or(configured);
}

void set_distillation(const MethodConfig& config, Method& method) {
  if (method.distils) {
    method.distillation = {.top_k = config.sdpo.top_k, .alpha = config.sdpo.alpha};
    method.teacher_ema = config.sdpo.teacher_ema;
  } else if (method.name == "opd" && config.opd.distils()) {
    const std::string& name = config.opd.divergence;
    method.distils = true;
    method.sign = 0;
    method.distillation = {
        .divergence = name == "forward-kl"   ? TokenDivergence::kForwardKl
                      : name == "reverse-kl" ? TokenDivergence::kReverseKl
                                             : TokenDivergence::kJsd,
        .tokens = config.opd.top_k > 0 ? DistilledTokens::kTeachersTop : DistilledTokens::kAll,
        .top_k = config.opd.top_k,
        .alpha = config.opd.alpha};
  }
}

// The configuration checks its own keys; this checks them together with the row.
void check_gate(const Method& method) {
  const GateRules& gate = method.gate;
  if (gate.signal != GateSignal::kNone && gate.warmup_steps == 0) {
    throw InputError(fmt::format("'{}' has a gate but no warm-up to calibrate it", method.name),
                     {.where = "method.gate.warmup_steps", .remedy = "the paper uses 5"});
  }
  if (gate.band_close > 0 && gate.band_close <= gate.band_reopen) {
    throw InputError(fmt::format("'{}' closes above {} and opens again at {}", method.name,
                                 gate.band_close, gate.band_reopen),
                     {.where = "method.gate.band_reopen", .remedy = "use 1"});
  }
}

}  // namespace

std::span<const MethodRow> method_table() {
  return kTable;
}

Method resolve_method(const MethodConfig& config, const LossConfig& loss) {
  const MethodRow& row = find_row(config.name);
  Method method{.name = row.name,
                .group_advantage = row.group_advantage,
                .sign = row.sign,
                .gated = row.gated,
                .teacher = row.teacher,
                .distils = row.distils,
                .divergence = divergence_of(row, config),
                .lambda_max = config.lambda_max,
                .lambda_slope = config.lambda_slope,
                .gate = gate_rules(row, config.gate),
                .other_teacher = !config.teacher.path.empty(),
                .penalty = config.penalty,
                .bonus = config.bonus.words.empty() ? 0 : config.bonus.size,
                .loss = loss};
  set_distillation(config, method);
  check_gate(method);
  // SD and OPD use only A and lambda u.
  if (!row.gated) return method;
  method.composition = row.composition.value_or(
      config.compose == "multiplicative" ? Composition::kMultiplicative : Composition::kAdditive);
  if (config.lambda_rule == "perplexity") {
    if (method.gate.signal != GateSignal::kTeacherPerplexity) {
      throw InputError(
          fmt::format("'{}' has no perplexity threshold for lambda to follow", row.name),
          {.where = "method.lambda_rule", .remedy = "set it to \"constant\" with this method"});
    }
    method.lambda_rule = LambdaRule::kPerplexity;
  }
  method.signal = config.signal;
  return method;
}

}  // namespace antisd::inline algo
