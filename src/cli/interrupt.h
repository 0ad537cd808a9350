// SIGINT, SIGTERM and SIGHUP as a flag, so that a command can finish its current work; a second
// signal ends the program at once.
#pragma once

#include <atomic>

namespace antisd::inline cli {

inline constexpr int kInterruptedStatus = 130;

// Catches these signals from now on, SIGHUP unless the program was started with it ignored (nohup).
// The flag lives as long as the program.
const std::atomic<bool>& catch_interrupts();

// For commands that write files: from now on a closed pipe (`antisd train ... | head -1`) or a
// file-size limit makes a write fail instead of killing the program. Child processes get the
// default SIGPIPE and SIGXFSZ back.
void outlive_refused_writes();

}  // namespace antisd::inline cli
