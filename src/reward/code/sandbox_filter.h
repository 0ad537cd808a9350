// The system calls that a graded program may make, as a BPF program for seccomp.
//
// An allow list: what Python and numpy need to compute, to use their own files and to start
// threads. Everything else (sockets, mounts, tracing, new namespaces, io_uring, keys, modules,
// exec) gives EPERM; clone3 gives ENOSYS so that libc falls back to clone, whose flags can be
// checked.
#pragma once

#include <string>

namespace antisd::inline reward {

struct FilterOptions {
  bool fork = false;    // further processes, not only threads
  bool signals = true;  // kill and the like; without a process namespace they could reach others
  // Modes, times, lengths and locks of files; without a mount namespace they could affect any file.
  bool file_changes = true;
};

// The raw array of sock_filter entries. Throws RunError if libseccomp fails.
std::string build_syscall_filter(const FilterOptions& options);

}  // namespace antisd::inline reward
