// For tests of what happens when memory or threads run out.
#pragma once

#include <cstdint>
#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

namespace antisd::testing {

// Only in a test's child process: from here on it may map only `more` further bytes.
inline void limit_address_space(std::uint64_t more) {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + more;
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
}

}  // namespace antisd::testing
