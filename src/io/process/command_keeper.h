// The processes behind SupervisedCommand: a starter, and one keeper per command.
//
// Both are forks of this process that never call exec. They may hold locks of threads that do not
// exist in them, so they only make system calls.
//
//   request to the starter: the command's text with its final 0, and two descriptors: channel, link
//   on the link:           'e' bytes (of standard error), 's' int (the status of wait(2))
#pragma once

#include <cstddef>

namespace antisd::inline io {

inline constexpr std::size_t kMaxCommand = 100'000;  // fits in a packet
inline constexpr std::size_t kMaxKeeperMessage = 4097;
inline constexpr char kKeeperErrors = 'e', kKeeperStatus = 's';

// The pid of the new process, or -1. It ends when the other end of `control` closes.
int start_keeper_starter(int control);

}  // namespace antisd::inline io
