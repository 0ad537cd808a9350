#include "algo/gate.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "algo/gate_signal.h"
#include "core/error.h"

namespace antisd::inline algo {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

constexpr const char* kMedianEntropy = "median entropy";
constexpr const char* kMeanEntropy = "mean entropy";
constexpr const char* kAutoEntropy = "auto entropy";

const char* entropy_name(GateStatistic statistic) {
  switch (statistic) {
    case GateStatistic::kMedian:
      return kMedianEntropy;
    case GateStatistic::kMean:
      return kMeanEntropy;
    case GateStatistic::kAuto:
      break;
  }
  return kAutoEntropy;
}

bool is_closed(GatePosition position) {
  return position == GatePosition::kClosedLow || position == GatePosition::kClosedHigh;
}

// "the median of the entropies was 0.0004 and their mean 0.27 in the warm-up"
std::string warmup_text(const GateState& state) {
  if (state.warmup_means.empty()) {
    return fmt::format("the gate's statistic ({}) was {:.4g} in the warm-up", state.signal,
                       state.h_warm.value_or(kNothing));
  }
  return fmt::format("the median of the entropies was {:.4g} and their mean {:.4g} in the warm-up",
                     median(state.warmup), median(state.warmup_means));
}

}  // namespace

std::string gate_signal_name(const GateRules& rules) {
  switch (rules.signal) {
    case GateSignal::kEntropy:
      return entropy_name(rules.statistic);
    case GateSignal::kStudentPerplexity:
      return "student_perplexity";
    case GateSignal::kTeacherPerplexity:
      return "teacher_perplexity";
    case GateSignal::kNone:
      break;
  }
  return "none";
}

std::optional<GateStatistic> chosen_statistic(const GateState& state) {
  if (state.signal == kMedianEntropy) return GateStatistic::kMedian;
  if (state.signal == kMeanEntropy) return GateStatistic::kMean;
  return std::nullopt;
}

std::string calibration_text(const GateRules& rules, const GateState& state) {
  if (state.too_small) {
    return fmt::format(
        "{}, below method.gate.min_warm = {}: too small to gate on. The gate stays open, and the "
        "term is on from here to the end; method.gate.on_too_small = \"stop\" would end the run "
        "instead",
        warmup_text(state), rules.min_warm);
  }
  if (state.warmup_means.empty()) return "";
  return fmt::format("{}: the gate reads the {} from here on (method.gate.min_warm = {})",
                     warmup_text(state), state.signal, rules.min_warm);
}

EntropyGate::EntropyGate(const GateRules& rules) : rules_(rules) {
  state_.signal = gate_signal_name(rules_);
  if (rules_.warmup_steps == 0) state_.position = GatePosition::kOpen;
}

GateReading EntropyGate::observe(const GateInput& input) {
  const bool gated = rules_.signal != GateSignal::kNone;
  const bool automatic = gate_signal_name(rules_) == kAutoEntropy;
  const bool calibrating = state_.steps < rules_.warmup_steps;
  const double statistic =
      automatic && state_.signal == kMeanEntropy ? input.mean : input.statistic;
  if (gated && calibrating && std::isnan(statistic)) return {.statistic = statistic};
  const double deciding = rules_.previous_step ? state_.previous.value_or(kNothing) : statistic;
  if (!std::isnan(statistic)) state_.previous = statistic;
  ++state_.steps;
  if (calibrating) {
    if (gated) state_.warmup.push_back(statistic);
    if (automatic) state_.warmup_means.push_back(input.mean);
    const bool calibrated = gated && state_.steps == rules_.warmup_steps;
    if (calibrated) calibrate();
    return {.statistic = statistic, .calibrated = calibrated, .too_small = state_.too_small};
  }
  if (state_.position == GatePosition::kWarmingUp) state_.position = GatePosition::kOpen;
  if (gated && !state_.too_small) state_.position = next(deciding);
  return {.position = state_.position,
          .statistic = statistic,
          .h_warm = h_warm(),
          .tau = tau(),
          .too_small = state_.too_small};
}

void EntropyGate::calibrate() {
  state_.h_warm = median(state_.warmup);
  if (state_.signal == kAutoEntropy) {
    const bool takes_mean = !(h_warm() >= rules_.min_warm);
    state_.signal = takes_mean ? kMeanEntropy : kMedianEntropy;
    if (takes_mean) {
      state_.h_warm = median(state_.warmup_means);
      state_.previous = state_.warmup_means.back();
    }
  }
  if (h_warm() >= rules_.min_warm) return;
  state_.too_small = true;
  if (rules_.on_too_small == OnTooSmall::kOpen) return;
  throw InputError(
      fmt::format("{}, below {}: too small to gate on", warmup_text(state_), rules_.min_warm),
      {.where = "method.gate.statistic",
       .remedy = "most tokens are certain: choose statistic = \"auto\", kind = "
                 "\"student_perplexity\" or \"none\", accept it with min_warm = 0, or leave the "
                 "gate open with on_too_small = \"open\""});
}

double EntropyGate::h_warm() const {
  return state_.h_warm.value_or(kNothing);
}

double EntropyGate::tau() const {
  return state_.h_warm ? std::max(rules_.close * h_warm(), rules_.close_floor) : kNothing;
}

GatePosition EntropyGate::next(double statistic) const {
  const bool too_low = statistic < tau();
  const bool too_high = rules_.band_close > 0 && statistic > rules_.band_close * h_warm();
  switch (state_.position) {
    case GatePosition::kOpen:
      if (too_low) return GatePosition::kClosedLow;
      return too_high ? GatePosition::kClosedHigh : GatePosition::kOpen;
    case GatePosition::kClosedLow:
      if (!(statistic >= rules_.reopen * h_warm())) return GatePosition::kClosedLow;
      return too_high ? GatePosition::kClosedHigh : GatePosition::kOpen;
    case GatePosition::kClosedHigh:
      if (!(statistic <= rules_.band_reopen * h_warm())) return GatePosition::kClosedHigh;
      return too_low ? GatePosition::kClosedLow : GatePosition::kOpen;
    case GatePosition::kWarmingUp:
      break;
  }
  return state_.position;
}

// Whether the state's values measure these rules' signal.
bool EntropyGate::watches(const GateState& state) const {
  const std::string own = gate_signal_name(rules_);
  return state.signal == own || (own == kAutoEntropy && state.h_warm && chosen_statistic(state));
}

void EntropyGate::restore(GateState state) {
  const bool warm = state.steps >= rules_.warmup_steps;
  const bool gated = rules_.signal != GateSignal::kNone;
  if (gated && !watches(state)) {
    if (state.position != GatePosition::kWarmingUp || state.h_warm) {
      throw InputError(fmt::format("the run's gate watched {}, and now it should watch {}",
                                   state.signal, gate_signal_name(rules_)),
                       {.where = "method.gate",
                        .remedy = "resume with the run's own configuration, or start a new run "
                                  "from it with train.init_from"});
    }
    *this = EntropyGate(rules_);
    return;
  }
  const bool fits =
      state.steps >= 0 && std::ssize(state.warmup) <= std::min(state.steps, rules_.warmup_steps) &&
      (warm || state.position == GatePosition::kWarmingUp) &&
      (!gated || warm == state.h_warm.has_value()) &&
      (state.signal != kAutoEntropy || state.warmup_means.size() == state.warmup.size()) &&
      (!state.too_small || (state.h_warm.has_value() && !is_closed(state.position)));
  if (!fits) {
    throw InputError(
        fmt::format("the gate's saved state (step {}, {} warm-up values) does not fit a warm-up of "
                    "{} steps",
                    state.steps, state.warmup.size(), rules_.warmup_steps),
        {.where = "method.gate.warmup_steps", .remedy = "resume with the run's own configuration"});
  }
  state_ = std::move(state);
  if (gated) return;
  state_.signal = gate_signal_name(rules_);
  state_.too_small = false;
  if (warm) state_.position = GatePosition::kOpen;  // its signal is no longer watched
}

}  // namespace antisd::inline algo
