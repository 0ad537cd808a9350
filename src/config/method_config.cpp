// The sections [method] and [context]: their keys, the presets, and checks across keys.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "config/run_config.h"
#include "core/error.h"

namespace antisd::inline config {
namespace {

struct PresetKey {
  const char* key;
  const char* paper;
  const char* released;
};

// Where the authors' released code differs from the paper.
constexpr std::array kPresetKeys = {
    PresetKey{"method.gate.kind", "entropy", "teacher_perplexity"},
    PresetKey{"method.gate.close_floor", "0", "1.01"},
    PresetKey{"method.gate.reopen", "1.0", "1.07"},
    PresetKey{"method.gate.max_perplexity", "0", "3"},
    PresetKey{"method.gate.previous_step", "false", "true"},
    PresetKey{"method.lambda_rule", "constant", "perplexity"},
    PresetKey{"method.signal.outlier_sigmas", "0", "2"},
    PresetKey{"method.signal.clamp_u", "0", "5"},
    PresetKey{"method.signal.standardise", "false", "true"},
    PresetKey{"method.signal.clamp_term", "0", "5"},
    PresetKey{"method.signal.max_response_tokens", "0", "12000"},
    PresetKey{"context.fallback", "dataset", "feedback"},
};
// The preset also sets the length, but a length that the user set wins: it suits the model and
// data.
constexpr const char* kReleasedLength = "rollout.max_sequence_tokens=16384";

}  // namespace

void RunConfig::describe_method() {
  OptionSet& o = options_;
  o.add("method.name", method.name,
        "how the group advantage becomes token advantages; each antisd-* changes the one setting "
        "it is named for (the paper's ablations and the two-sided gate)")
      .one_of({"grpo", "sd", "opd", "antisd", "sdpo", "antisd-reverse-kl", "antisd-no-gate",
               "antisd-close-0.90", "antisd-close-0.95", "antisd-multiplicative",
               "antisd-student-gate", "antisd-no-teacher", "antisd-two-sided"})
      .common_in({"train", "sweep"});
  o.add("method.preset", method.preset,
        "the paper's settings, those of the authors' released code, or a baseline with the plain "
        "group advantage (docs/methods.md); a key that is set beside the preset or after it wins, "
        "and rollout.max_sequence_tokens (16384 in the released code) wins wherever it is set")
      .one_of({"paper", "released", "dapo", "dr-grpo", "gspo", "cispo", "rloo"});
  o.add("method.lambda_max", method.lambda_max,
        "weight of the per-token term while the gate is open")
      .at_least(0);
  o.add("method.lambda_rule", method.lambda_rule,
        "constant: lambda_max for every response; perplexity: lambda_slope ln(ppl / tau) with the "
        "teacher's perplexity of the response, between 0 and lambda_max")
      .one_of({"constant", "perplexity"});
  o.add("method.lambda_slope", method.lambda_slope,
        "slope of lambda_rule = \"perplexity\"; other rules do not use it")
      .at_least(0);
  o.add("method.phi", method.phi,
        "shape of antisd's term: jsd is (softplus(u) - ln 2)/2, kl is u itself")
      .one_of({"jsd", "kl"});
  o.add("method.compose", method.compose,
        "token advantage: additive is A - lambda phi, multiplicative is A (1 - lambda phi)")
      .one_of({"additive", "multiplicative"});
}

void RunConfig::describe_gate() {
  OptionSet& o = options_;
  o.add("method.gate.kind", method.gate.kind,
        "what the gate measures: the teacher's entropy, the student's perplexity over all tokens, "
        "the mean over responses of the teacher's perplexity, or nothing (always open after the "
        "warm-up)")
      .one_of({"entropy", "student_perplexity", "teacher_perplexity", "none"});
  o.add("method.gate.statistic", method.gate.statistic,
        "statistic of the entropies of all response tokens of a step; auto is the paper's median "
        "where it reaches min_warm in the warm-up, else the mean, chosen once at the end of the "
        "warm-up")
      .one_of({"auto", "median", "mean"});
  o.add("method.gate.warmup_steps", method.gate.warmup_steps,
        "steps with lambda = 0 that calibrate the gate; their median is the warm-up value")
      .at_least(0);
  o.add("method.gate.min_warm", method.gate.min_warm,
        "a warm-up value below this is too small to gate on, in nats")
      .at_least(0);
  o.add("method.gate.on_too_small", method.gate.on_too_small,
        "if the warm-up value is below min_warm: open warns and keeps the gate open, stop ends the "
        "run")
      .one_of({"open", "stop"});
  o.add("method.gate.close", method.gate.close,
        "the gate closes below this times the warm-up value")
      .between(0, 1);
  o.add("method.gate.close_floor", method.gate.close_floor,
        "the gate also closes below this value of the statistic, whatever the warm-up value; 0 is "
        "off")
      .at_least(0);
  o.add("method.gate.reopen", method.gate.reopen,
        "a gate that closed low reopens at this times the warm-up value")
      .at_least(0);
  o.add("method.gate.band_close", method.gate.band_close,
        "two-sided gate: it also closes above this times the warm-up value; 0 is off")
      .at_least(0);
  o.add("method.gate.band_reopen", method.gate.band_reopen,
        "two-sided gate: a gate that closed high reopens at this times the warm-up value")
      .at_least(0);
  o.add("method.gate.max_perplexity", method.gate.max_perplexity,
        "responses with a teacher perplexity above this are left out of the statistic and, with "
        "lambda_rule = \"perplexity\", get no term; 0 is off")
      .at_least(0);
  o.add("method.gate.previous_step", method.gate.previous_step,
        "gate on the statistic of the previous step");

  o.add("method.signal.outlier_sigmas", method.signal.outlier_sigmas,
        "set u to 0 where |u| exceeds this many standard deviations of the warm-up's u; 0 is off")
      .at_least(0);
  o.add("method.signal.clamp_u", method.signal.clamp_u, "bound on |u|, in nats; 0 is off")
      .at_least(0);
  o.add("method.signal.standardise", method.signal.standardise,
        "standardise the term within each response");
  o.add("method.signal.clamp_term", method.signal.clamp_term, "bound on |term|; 0 is off")
      .at_least(0);
  o.add("method.signal.max_response_tokens", method.signal.max_response_tokens,
        "responses of this many tokens or more get no term; 0 is off")
      .at_least(0);

  o.add("method.sdpo.top_k", method.sdpo.top_k,
        "number of the student's most likely tokens that are compared one by one; the rest is one "
        "bucket")
      .at_least(1);
  o.add("method.sdpo.alpha", method.sdpo.alpha,
        "weight of the teacher in the mixture of teacher and student")
      .between(0, 1);
  o.add("method.sdpo.teacher_ema", method.sdpo.teacher_ema,
        "rate at which the teacher's weights follow the student's; 0: the teacher has the "
        "student's weights")
      .between(0, 1);

  o.add("method.bonus.words", method.bonus.words,
        "control without a teacher: tokens that are one of these words, spaces aside, get "
        "method.bonus.size added to their advantage");
  o.add("method.bonus.size", method.bonus.size, "what method.bonus.words get; may be negative");
  o.add("method.penalty.below", method.penalty.below,
        "control without a teacher: tokens to which the student gives a probability below this "
        "lose method.penalty.size of their advantage; 0 is off")
      .between(0, 1);
  o.add("method.penalty.size", method.penalty.size,
        "what tokens below method.penalty.below lose; may be negative");

  o.add("context.control", context.control,
        "controls for research, in place of the paper's context: other-problem: another problem's "
        "solution; wrong: an incorrect rollout; truthful-verdict: the verdict on the solution that "
        "is shown; no-verdict: the solution without a verdict; prompt-alone: the student's prompt")
      .one_of({"none", "other-problem", "wrong", "truthful-verdict", "no-verdict", "prompt-alone"});
  o.add("context.peer", context.peer,
        "which correct response the teacher is shown: rollout draws one per rollout, group draws "
        "one for the whole group")
      .one_of({"rollout", "group"});
  o.add("context.fallback", context.fallback,
        "when no peer is correct: dataset shows the data set's solution, else its answer; feedback "
        "shows only the verdict on the response")
      .one_of({"dataset", "feedback"});
  o.add("context.column", context.column,
        "a column of the data set that the teacher is shown in place of a correct peer, e.g. hint; "
        "a dot selects a member; context.fallback where it is empty. Empty: none");
  o.add("context.command", context.command,
        "program and arguments that say what the teacher is shown for each response, in place of a "
        "correct peer (docs/methods.md); context.fallback where they say nothing. Empty: none");
  o.add("context.timeout_s", context.timeout_s,
        "time limit of context.command per response, in seconds of wall-clock time")
      .above(0);
  o.add("context.max_solution_tokens", context.max_solution_tokens,
        "a longer solution is cut in the middle: the first 25 % and the last 75 % of this many "
        "tokens are kept")
      .at_least(16);
  o.add("context.templates", context.templates,
        "teacher prompts by task, instead of the paper's: math, code or countdown = a text with "
        "{prompt} or {problem}, {solution} and {feedback}; math_without_solution etc. when no "
        "solution is shown");
}

void RunConfig::resolve() {
  for (const PresetKey& row : kPresetKeys) {
    const char* value = method.preset == "released" ? row.released : row.paper;
    options_.imply("method.preset", fmt::format("{}={}", row.key, value));
  }
  if (method.preset == "released" && !options_.find("rollout.max_sequence_tokens")->was_set())
    options_.imply("method.preset", kReleasedLength);
  // Unless it is set, a prompt may fill half of a sequence.
  if (!options_.find("data.max_prompt_tokens")->was_set()) {
    const std::int64_t half =
        std::min(DataConfig().max_prompt_tokens, rollout.max_sequence_tokens / 2);
    options_.imply("rollout.max_sequence_tokens", fmt::format("data.max_prompt_tokens={}", half));
  }
  imply_objective();
  imply_teacher();
  validate();
}

void RunConfig::validate_method() const {
  if (method.gate.reopen < method.gate.close) {
    throw InputError(fmt::format("method.gate.reopen = {} is below method.gate.close = {}",
                                 method.gate.reopen, method.gate.close),
                     {.remedy = "a gate that opens below where it closes would chatter"});
  }
  if (method.gate.band_close > 0 && method.gate.band_close <= method.gate.band_reopen) {
    throw InputError(
        fmt::format("method.gate.band_close = {} is not above method.gate.band_reopen = {}",
                    method.gate.band_close, method.gate.band_reopen),
        {.remedy = "the prototype used 1.07 and 1.0"});
  }
  if (method.gate.kind != "none" && method.gate.warmup_steps == 0) {
    throw InputError("method.gate.warmup_steps = 0 leaves nothing to calibrate the gate with",
                     {.remedy = "the paper uses 5; or set method.gate.kind = \"none\""});
  }
  if (method.lambda_rule == "perplexity" && method.gate.kind != "teacher_perplexity") {
    throw InputError(
        fmt::format("method.lambda_rule = \"perplexity\" with method.gate.kind = \"{}\"",
                    method.gate.kind),
        {.remedy = "it compares perplexities with the gate's tau: use teacher_perplexity"});
  }
  if (method.sdpo.alpha <= 0 || method.sdpo.alpha >= 1) {
    throw InputError(fmt::format("method.sdpo.alpha = {} makes the loss 0", method.sdpo.alpha),
                     {.remedy = "choose a value between 0 and 1, e.g. 0.5"});
  }
}

}  // namespace antisd::inline config
