// For tests: a shared library that stands before libc and lets chosen system calls fail.
//
// Linked into a test it is steered by these functions:
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
// Before a program (LD_PRELOAD) the environment steers it: ANTISD_FAULT_FOLDER=/run, and
// ANTISD_FAULT="CALL ERRNO once|on|short", e.g. "12 28 once". With ANTISD_FAULT_LOG=FILE every call
// that counts is a line there, with its number, name and path.
//
// What is counted: open, write, pwrite, fsync, fdatasync, ftruncate, close, rename, mkdir, unlink,
// rmdir, link, fstat and their relatives.
#pragma once

#include <cstdint>
#include <string>

namespace antisd::inline core::faults {

struct Fault {
  std::int64_t call = 0;  // the first that fails, from 1 on
  int error = 0;          // errno
  bool on = false;        // every later call fails as well, as on a disk that stays full
  bool is_short = false;  // a write takes half of its bytes instead; other calls are left alone
};

// Calls on `folder` and below count from now on, from 1 again. An absolute path without links.
void watch(const std::string& folder);
void arm(const Fault& fault);  // counts from 1 again
void disarm();                 // goes on counting; nothing fails
std::int64_t calls();          // counted since watch() or arm()
std::int64_t failed();         // of them, by our doing
std::string last_failed();     // "write /tmp/x/.metrics.tmp"

}  // namespace antisd::inline core::faults
