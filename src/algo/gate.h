// The entropy gate: a Schmitt trigger on one number per step, calibrated by its warm-up.
//
//   EntropyGate gate(method.gate);
//   const GateReading g = gate.observe(gate_statistic(method.gate, values));  // once per step
//   save(gate.state());  // later: gate.restore(state)
//
// Steps k < W store S_k and keep the gate closed; a step with nothing to measure does not count.
// Then H_warm is their median, tau = close * H_warm, and the gate opens. With statistic = auto the
// warm-up stores the median and the mean of the entropies; S_k is the median if its H_warm reaches
// min_warm, else the mean, chosen once. An H_warm below min_warm is too small to gate on:
// on_too_small then keeps the gate open for the rest of the run, or stops the run. After the
// warm-up
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

namespace antisd::inline algo {

enum class GateSignal { kNone, kEntropy, kStudentPerplexity, kTeacherPerplexity };
enum class GateStatistic { kMedian, kMean, kAuto };
enum class OnTooSmall { kOpen, kStop };

struct GateRules {
  GateSignal signal = GateSignal::kNone;  // kNone: open as soon as the warm-up is over
  GateStatistic statistic = GateStatistic::kMedian;
  std::int64_t warmup_steps = 0;  // W
  double min_warm = 0;
  OnTooSmall on_too_small = OnTooSmall::kOpen;
  double close = 0.93;
  double close_floor = 0;  // tau is at least this
  double reopen = 1;
  double band_close = 0;  // b; 0: one-sided
  double band_reopen = 1;
  double max_perplexity = 0;   // responses above it are left out; 0: none
  bool previous_step = false;  // S_{k-1} decides instead of S_k
};

// "median entropy", "student_perplexity", "none": values with different names cannot be compared.
// "auto entropy" stands for both until the warm-up has chosen.
std::string gate_signal_name(const GateRules& rules);

enum class GatePosition { kWarmingUp, kOpen, kClosedLow, kClosedHigh };

// The complete state of the gate.
struct GateState {
  GatePosition position = GatePosition::kWarmingUp;
  std::int64_t steps = 0;            // observed
  std::vector<double> warmup;        // S_0 .. S_{W-1}; with statistic = auto the medians,
  std::vector<double> warmup_means;  // and here the means
  std::optional<double> h_warm;      // once the warm-up is over
  bool too_small = false;            // H_warm is too small: the gate stays open
  std::optional<double> previous;    // S_{k-1}
  std::string signal;                // what the values measure: gate_signal_name

  bool operator==(const GateState&) const = default;
};

// The statistic of the entropies; nothing for other signals and before auto has chosen.
std::optional<GateStatistic> chosen_statistic(const GateState& state);

// The result of the warm-up as a sentence for the log; "" if there was no choice and no warning.
std::string calibration_text(const GateRules& rules, const GateState& state);

// The measurements of a step.
struct GateInput {
  // A single number is S_k.
  GateInput(double statistic_now, double mean_now = std::numeric_limits<double>::quiet_NaN())
      : statistic(statistic_now), mean(mean_now) {}

  double statistic;  // S_k; with statistic = auto the median of the entropies,
  double mean;       // and here their mean
};

struct GateReading {
  GatePosition position = GatePosition::kWarmingUp;
  double statistic = std::numeric_limits<double>::quiet_NaN();  // S_k
  double h_warm = std::numeric_limits<double>::quiet_NaN();     // NaN in the warm-up
  double tau = std::numeric_limits<double>::quiet_NaN();
  bool calibrated = false;  // this step ended the warm-up
  bool too_small = false;   // H_warm is too small: the gate stays open

  bool open() const { return position == GatePosition::kOpen; }  // g
};

class EntropyGate {
 public:
  explicit EntropyGate(const GateRules& rules);

  // A NaN statistic (nothing to measure in this step) does not change the gate. InputError if the
  // warm-up ends with H_warm below min_warm and on_too_small is kStop.
  GateReading observe(const GateInput& input);

  const GateState& state() const { return state_; }
  // InputError for a state that these rules cannot have produced. A warm-up of another signal
  // starts again. With statistic = auto, a state calibrated with the median or the mean keeps it.
  void restore(GateState state);

 private:
  bool watches(const GateState& state) const;
  void calibrate();
  double h_warm() const;
  double tau() const;
  GatePosition next(double statistic) const;

  GateRules rules_;
  GateState state_;
};

}  // namespace antisd::inline algo
