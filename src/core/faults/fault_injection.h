// For tests: a shared library that intercepts libc calls and makes chosen ones fail.
//
// Linked into a test, it is controlled by these functions:
//
//   faults::watch(folder);  // only calls on paths below it count
//   run();
//   const std::int64_t calls = faults::calls();
//   for (std::int64_t n = 1; n <= calls; ++n) {
//     faults::arm({.call = n, .error = ENOSPC});
//     run();
//   }
//   faults::disarm();
//
// Preloaded into a program (LD_PRELOAD), it is controlled by the environment:
// ANTISD_FAULT_FOLDER=/run and ANTISD_FAULT="CALL ERRNO once|on|short", e.g. "12 28 once".
// ANTISD_FAULT_LOG=FILE logs every counted call with its number, name and path.
//
// Counted are open, write, pwrite, fsync, fdatasync, ftruncate, close, rename, mkdir, unlink,
// rmdir, link, fstat and their variants.
#pragma once

#include <cstdint>
#include <string>

namespace antisd::inline core::faults {

struct Fault {
  std::int64_t call = 0;  // the first call that fails, from 1
  int error = 0;          // errno
  bool on = false;        // every later call fails as well, as on a disk that stays full
  bool is_short = false;  // a write takes half of its bytes instead; other calls succeed
};

// From now on, counts calls on `folder` and below, from 1. An absolute path without symbolic links.
void watch(const std::string& folder);
void arm(const Fault& fault);  // restarts the count at 1
void disarm();                 // keeps counting; nothing fails
std::int64_t calls();          // counted since watch() or arm()
std::int64_t failed();         // calls that this library made fail
std::string last_failed();     // "write /tmp/x/.metrics.tmp"

}  // namespace antisd::inline core::faults
