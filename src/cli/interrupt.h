// SIGINT and SIGTERM as a flag, so that a command can finish what it has; a second signal ends the
// program at once.
#pragma once

#include <atomic>

namespace antisd {

inline constexpr int kInterruptedStatus = 130;

// Catches both from now on. The flag lives as long as the program.
const std::atomic<bool>& catch_interrupts();

}  // namespace antisd
