// The system calls a graded program may make, as a BPF program for seccomp.
//
// An allow list: what Python and numpy need to compute, to use files of their own and to start
// threads. Everything else (sockets, mounts, tracing, new namespaces, io_uring, keys, modules,
// exec) answers EPERM; clone3 answers ENOSYS so that libc falls back to clone, whose flags can be
// read.
#pragma once

#include <string>

namespace antisd::inline reward {

struct FilterOptions {
  bool fork = false;    // further processes, not only threads
  bool signals = true;  // kill and its like; without a process namespace they could reach others
  // Modes, times, lengths and locks of files; without a mount namespace they could be anybody's.
  bool file_changes = true;
};

// The raw array of sock_filter entries. Throws RunError where libseccomp fails.
std::string build_syscall_filter(const FilterOptions& options);

}  // namespace antisd::inline reward
