#include "algo/gate.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "algo/gate_signal.h"
#include "core/error.h"

namespace antisd {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::string gate_signal_name(const GateRules& rules) {
  switch (rules.signal) {
    case GateSignal::kEntropy:
      return rules.statistic == GateStatistic::kMean ? "mean entropy" : "median entropy";
    case GateSignal::kStudentPerplexity:
      return "student_perplexity";
    case GateSignal::kTeacherPerplexity:
      return "teacher_perplexity";
    case GateSignal::kNone:
      break;
  }
  return "none";
}

EntropyGate::EntropyGate(const GateRules& rules) : rules_(rules) {
  state_.signal = gate_signal_name(rules_);
  if (rules_.warmup_steps == 0) state_.position = GatePosition::kOpen;
}

GateReading EntropyGate::observe(double statistic) {
  const bool gated = rules_.signal != GateSignal::kNone;
  const bool calibrating = state_.steps < rules_.warmup_steps;
  if (gated && calibrating && std::isnan(statistic)) return {.statistic = statistic};
  const double deciding = rules_.previous_step ? state_.previous.value_or(kNothing) : statistic;
  if (!std::isnan(statistic)) state_.previous = statistic;
  ++state_.steps;
  if (calibrating) {
    if (gated) state_.warmup.push_back(statistic);
    if (gated && state_.steps == rules_.warmup_steps) calibrate();
    return {.statistic = statistic};
  }
  if (state_.position == GatePosition::kWarmingUp) state_.position = GatePosition::kOpen;
  if (gated) state_.position = next(deciding);
  return {state_.position, statistic, h_warm(), tau()};
}

void EntropyGate::calibrate() {
  state_.h_warm = median(state_.warmup);
  if (h_warm() >= rules_.min_warm) return;
  throw InputError(
      fmt::format("the gate's statistic was {:.4g} in the warm-up, below {}: too small to gate on",
                  h_warm(), rules_.min_warm),
      {.where = "method.gate.statistic",
       .remedy = "most tokens are certain: choose statistic = \"mean\", kind = "
                 "\"student_perplexity\" or \"none\", or accept it with min_warm = 0"});
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

void EntropyGate::restore(GateState state) {
  const bool warm = state.steps >= rules_.warmup_steps;
  const bool gated = rules_.signal != GateSignal::kNone;
  if (gated && state.signal != state_.signal) {
    if (state.position != GatePosition::kWarmingUp || state.h_warm) {
      throw InputError(fmt::format("the run's gate watched {}, now it is to watch {}", state.signal,
                                   state_.signal),
                       {.where = "method.gate",
                        .remedy = "resume with the run's own configuration, or start a new run "
                                  "from it with train.init_from"});
    }
    *this = EntropyGate(rules_);
    return;
  }
  const bool fits = state.steps >= 0 &&
                    std::ssize(state.warmup) <= std::min(state.steps, rules_.warmup_steps) &&
                    (warm || state.position == GatePosition::kWarmingUp) &&
                    (!gated || warm == state.h_warm.has_value());
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
  if (warm) state_.position = GatePosition::kOpen;  // whatever shut it is not watched any more
}

}  // namespace antisd
