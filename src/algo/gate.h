// The entropy-triggered gate: a Schmitt trigger on one number a step, calibrated by its warm-up.
//
//   EntropyGate gate(method.gate);
//   const GateReading g = gate.observe(gate_statistic(method.gate, values));   // once a step
//   checkpoint(gate.state());                                  // later: gate.restore(state)
//
// Steps k < W store S_k and keep the gate shut; a step with nothing to measure does not count. Then
// H_warm is their median, tau = close * H_warm, and the gate opens; from there on
//   open,        S_k < tau                      -> closed low
//   closed low,  S_k >= reopen * H_warm         -> open
// and, two-sided (band_close = b > 0),
//   open,        S_k > b * H_warm               -> closed high
//   closed high, S_k <= band_reopen * H_warm    -> open, or closed low where S_k < tau
//   closed low,  S_k >= reopen * H_warm         -> closed high where S_k > b * H_warm
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace antisd {

enum class GateSignal { kNone, kEntropy, kStudentPerplexity, kTeacherPerplexity };
enum class GateStatistic { kMedian, kMean };

struct GateRules {
  GateSignal signal = GateSignal::kNone;  // kNone: open as soon as the warm-up is over
  GateStatistic statistic = GateStatistic::kMedian;
  std::int64_t warmup_steps = 0;  // W
  double min_warm = 0;
  double close = 0.93;
  double close_floor = 0;  // tau is at least this
  double reopen = 1;
  double band_close = 0;  // b; 0: one-sided
  double band_reopen = 1;
  double max_perplexity = 0;   // responses above it leave the statistic; 0: none does
  bool previous_step = false;  // S_{k-1} decides instead of S_k
};

// "median entropy", "student_perplexity", "none": numbers of two names cannot be compared.
std::string gate_signal_name(const GateRules& rules);

enum class GatePosition { kWarmingUp, kOpen, kClosedLow, kClosedHigh };

// Everything the gate remembers.
struct GateState {
  GatePosition position = GatePosition::kWarmingUp;
  std::int64_t steps = 0;          // observed
  std::vector<double> warmup;      // S_0 .. S_{W-1}
  std::optional<double> h_warm;    // once the warm-up is over
  std::optional<double> previous;  // S_{k-1}
  std::string signal;              // what the numbers measure: gate_signal_name

  bool operator==(const GateState&) const = default;
};

struct GateReading {
  GatePosition position = GatePosition::kWarmingUp;
  double statistic = std::numeric_limits<double>::quiet_NaN();  // S_k
  double h_warm = std::numeric_limits<double>::quiet_NaN();     // NaN in the warm-up
  double tau = std::numeric_limits<double>::quiet_NaN();

  bool open() const { return position == GatePosition::kOpen; }  // g
};

class EntropyGate {
 public:
  explicit EntropyGate(const GateRules& rules);

  // A NaN statistic (nothing to measure this step) leaves the gate as it is. InputError where the
  // warm-up ends with H_warm below min_warm: then somebody has to choose what to gate on.
  GateReading observe(double statistic);

  const GateState& state() const { return state_; }
  // InputError for a state that these rules cannot have produced. A warm-up of another signal
  // begins anew.
  void restore(GateState state);

 private:
  void calibrate();
  double h_warm() const;
  double tau() const;
  GatePosition next(double statistic) const;

  GateRules rules_;
  GateState state_;
};

}  // namespace antisd
