// Starts the ranks of a run on this machine: this program again, once for each rank, with the same
// arguments. What a rank is told stands in its variables (dist/place.h).
//
//   const int status = dist::launch({.processes = 8, .silence_s = 30});
//
// SIGINT, SIGTERM, SIGHUP and SIGUSR1 are passed on, each once: a rank has a session of its own, so
// a terminal's signals reach only the launcher. Rank 0 has the launcher's standard streams. What
// another rank prints goes to standard error, line by line, after "rank 2: ".
//
// No process of the run outlives the launcher. Descendants that a rank leaves behind (graders, say)
// are killed when the ranks have ended. The ranks are killed by the kernel if the launcher is.
#pragma once

namespace antisd::inline dist {

struct LaunchOptions {
  int processes = 1;
  double silence_s = 30;  // the time in which ranks notice by themselves that another is lost
};

// Waits for all ranks and returns the exit status of the run: 0 if all ranks had 0; that of the
// first rank that failed; 1 if a rank was killed; 130 if they were stopped by a signal. Statuses
// other than 1 come first, because ranks that only lost another one exit with 1.
//
// If a rank fails, the others have silence_s and a few seconds to end by themselves. Then they get
// SIGTERM, then SIGKILL. So does a rank that does not end after a second signal to stop.
//
// RunError if a rank cannot be started. Call it in the main thread, in a process without other
// children.
int launch(const LaunchOptions& options);

}  // namespace antisd::inline dist
