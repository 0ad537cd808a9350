// The sections [advantage] and [loss]: their keys, the presets of other methods, and checks across
// keys.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "config/run_config.h"
#include "core/error.h"

namespace antisd::inline config {
namespace {

struct PresetValue {
  const char* preset;
  const char* setting;
};

// What each baseline changes; docs/methods.md names the papers. Each is GRPO's family without a
// teacher, unless method.name is set as well.
constexpr std::array kBaselines = {
    PresetValue{"dapo", "method.name=grpo"},
    PresetValue{"dapo", "loss.clip_high=0.28"},
    PresetValue{"dapo", "rollout.refill=8"},
    PresetValue{"dr-grpo", "method.name=grpo"},
    PresetValue{"dr-grpo", "advantage.scale=none"},
    PresetValue{"dr-grpo", "loss.aggregation=seq-mean-token-sum-norm"},
    PresetValue{"gspo", "method.name=grpo"},
    PresetValue{"gspo", "loss.ratio=sequence"},
    PresetValue{"gspo", "loss.clip_low=0.0003"},
    PresetValue{"gspo", "loss.clip_high=0.0004"},
    PresetValue{"gspo", "loss.aggregation=seq-mean-token-mean"},
    PresetValue{"cispo", "method.name=grpo"},
    PresetValue{"cispo", "loss.policy=cispo"},
    PresetValue{"cispo", "loss.clip_low=1"},
    PresetValue{"cispo", "loss.clip_high=4"},
    PresetValue{"rloo", "method.name=grpo"},
    PresetValue{"rloo", "advantage.baseline=leave-one-out"},
    PresetValue{"rloo", "advantage.scale=none"},
    PresetValue{"rloo", "loss.aggregation=seq-mean-token-sum"},
};
// DAPO's buffer: 4,096 of 20,480 tokens.
constexpr std::int64_t kOverlongPart = 5;

}  // namespace

void RunConfig::describe_objective() {
  OptionSet& o = options_;
  o.add("advantage.baseline", advantage.baseline,
        "what is subtracted from a reward: group: the group's mean; leave-one-out: the mean of "
        "the group's other responses")
      .one_of({"group", "leave-one-out"});
  o.add("advantage.scale", advantage.scale,
        "what the difference is divided by: the standard deviation of the group's rewards, that "
        "of all rewards of the step, or nothing")
      .one_of({"group", "batch", "none"});

  o.add("loss.policy", loss.policy,
        "clip: PPO's clipped ratio times A; cispo: the clipped ratio is a constant weight of "
        "A log p, so that no token loses its gradient")
      .one_of({"clip", "cispo"});
  o.add("loss.ratio", loss.ratio,
        "the probability ratio of each token, or of the whole response: the geometric mean of its "
        "tokens' ratios (GSPO)")
      .one_of({"token", "sequence"});
  o.add("loss.clip_low", loss.clip_low, "the probability ratio is clipped below 1 - clip_low")
      .between(0, 1);
  o.add("loss.clip_high", loss.clip_high, "the probability ratio is clipped above 1 + clip_high")
      .at_least(0);
  o.add("loss.dual_clip", loss.dual_clip,
        "upper bound on the loss of tokens with a negative advantage, in units of |A|; not for "
        "cispo")
      .above(1);
  o.add(
       "loss.kl_coef", loss.kl_coef,
       "weight of the KL divergence from the frozen reference model; 0: no reference model is kept")
      .at_least(0);
  o.add("loss.kl_estimator", loss.kl_estimator,
        "of the KL divergence per token, with d = log p - log p_reference: k1: d; k2: d^2 / 2; k3: "
        "exp(-d) + d - 1")
      .one_of({"k1", "k2", "k3"});
  o.add("loss.entropy_coef", loss.entropy_coef,
        "weight of an entropy bonus; its gradient is estimated from the sampled tokens, without "
        "bias on the step's first update")
      .at_least(0);
  o.add("loss.aggregation", loss.aggregation,
        "token-mean: mean over all response tokens of the batch; seq-mean-token-mean: mean over "
        "responses of their means; seq-mean-token-sum: mean over responses of their sums; "
        "seq-mean-token-sum-norm: that divided by loss.norm_tokens (Dr. GRPO)")
      .one_of(
          {"token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"});
  o.add("loss.norm_tokens", loss.norm_tokens,
        "the constant of seq-mean-token-sum-norm; unless set, rollout.max_sequence_tokens")
      .at_least(1);
  o.add("loss.overlong_filter", loss.overlong_filter,
        "responses that ended by their length count in A, but not in the loss");
  o.add("loss.rollout_correction", loss.rollout_correction,
        "what becomes of a token by w = p_old / p_rollout, the policy at the step's beginning over "
        "the one that sampled it: tis: its loss is multiplied by min(w, C); mask: it counts only "
        "where w lies between 1/C and C")
      .one_of({"none", "tis", "mask"});
  o.add("loss.rollout_correction_cap", loss.rollout_correction_cap, "C of loss.rollout_correction")
      .at_least(1);
}

void RunConfig::imply_objective() {
  for (const PresetValue& row : kBaselines)
    if (method.preset == row.preset) options_.imply("method.preset", row.setting);
  if (method.preset == "dapo")
    options_.imply("method.preset", fmt::format("reward.overlong_tokens={}",
                                                rollout.max_sequence_tokens / kOverlongPart));
  if (!options_.find("rollout.partial_tokens")->was_set())
    options_.imply("rollout.max_sequence_tokens",
                   fmt::format("rollout.partial_tokens={}",
                               std::max<std::int64_t>(1, rollout.max_sequence_tokens / 4)));
  if (!options_.find("loss.norm_tokens")->was_set())
    options_.imply("rollout.max_sequence_tokens",
                   fmt::format("loss.norm_tokens={}", rollout.max_sequence_tokens));
}

void RunConfig::validate_objective() const {
  if (reward.overlong_tokens >= rollout.max_sequence_tokens) {
    throw InputError(
        fmt::format("reward.overlong_tokens = {} is not below rollout.max_sequence_tokens = {}",
                    reward.overlong_tokens, rollout.max_sequence_tokens),
        {.remedy = "DAPO uses a fifth of it"});
  }
  const bool distils = method.name == "sdpo" || (method.name == "opd" && method.opd.distils());
  if (!distils) return;
  const LossConfig plain;
  for (const auto& [key, differs] :
       {std::pair("loss.aggregation", loss.aggregation != plain.aggregation),
        std::pair("loss.ratio", loss.ratio != plain.ratio),
        std::pair("loss.policy", loss.policy != plain.policy),
        std::pair("loss.rollout_correction",
                  loss.rollout_correction != plain.rollout_correction)}) {
    if (!differs) continue;
    throw InputError(
        fmt::format("{} has no meaning for {}, whose loss is a divergence", key, method.name),
        {.where = key, .remedy = "leave it out, or use another method.name"});
  }
}

}  // namespace antisd::inline config
