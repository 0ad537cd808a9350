// SIGINT, SIGTERM, SIGUSR1 (sent by Slurm before it ends a job) and SIGHUP (the terminal closed) as
// a request to stop: the step is finished and saved. A second one exits at once. A program that was
// started with SIGHUP ignored (nohup) keeps ignoring it.
#pragma once

namespace antisd::inline run {

inline constexpr int kStoppedStatus = 130;

// Catches the signals while it lives. Only one at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool received();
};

}  // namespace antisd::inline run
