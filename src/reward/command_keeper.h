// The processes behind SupervisedCommand: a starter, and one keeper for each command.
//
// Both are copies of this process that never call exec, beside the locks of threads which do not
// exist there: they make system calls alone.
//
//   order to the starter:  the command's text with its 0, and two descriptors: channel and link
//   on the link:           'e' bytes (of standard error), 's' int (the status of wait(2))
#pragma once

#include <cstddef>

namespace antisd::inline reward {

inline constexpr std::size_t kMaxCommand = 100'000;  // a packet holds it
inline constexpr std::size_t kMaxKeeperMessage = 4097;
inline constexpr char kKeeperErrors = 'e', kKeeperStatus = 's';

// The number of the new process, or -1. It ends when the other end of `control` does.
int start_keeper_starter(int control);

}  // namespace antisd::inline reward
