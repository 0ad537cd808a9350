// SIGINT, SIGTERM and SIGHUP as a flag, so that a command can finish what it has; a second signal
// ends the program at once.
#pragma once

#include <atomic>

namespace antisd::inline cli {

inline constexpr int kInterruptedStatus = 130;

// Catches them from now on, SIGHUP unless the program was started with it ignored (nohup). The flag
// lives as long as the program.
const std::atomic<bool>& catch_interrupts();

// For commands whose work goes into files: a closed pipe (`antisd train ... | head -1`) and a limit
// of file sizes are errors of a write from now on, no longer the end of the program. Processes that
// it starts set SIGPIPE and SIGXFSZ back to the default.
void outlive_refused_writes();

}  // namespace antisd::inline cli
