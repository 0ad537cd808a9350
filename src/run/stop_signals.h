// SIGINT, SIGTERM, SIGUSR1 (what Slurm sends before it ends a job) and SIGHUP (a terminal that
// closes) as a wish to stop: the step is finished and saved. A second one leaves at once. A program
// that was started with SIGHUP ignored (nohup) goes on ignoring it.
#pragma once

namespace antisd::inline run {

inline constexpr int kStoppedStatus = 130;

// Catches the signals as long as it lives. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool received();
};

}  // namespace antisd::inline run
