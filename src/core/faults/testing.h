// For tests that make system calls fail: the faults worth trying, and what must be intact after
// each.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/faults/fault_injection.h"

namespace antisd::testing {

struct FaultKind {
  const char* name;
  int error;
  bool on = false, is_short = false;

  faults::Fault at(std::int64_t call) const {
    return {.call = call, .error = error, .on = on, .is_short = is_short};
  }
};

inline const std::vector<FaultKind>& fault_kinds() {
  static const std::vector<FaultKind> kinds = {{"ENOSPC", ENOSPC},
                                               {"ENOSPC from there on", ENOSPC, true},
                                               {"EIO", EIO},
                                               {"EIO from there on", EIO, true},
                                               {"EDQUOT", EDQUOT},
                                               {"EINTR", EINTR},
                                               {"a short write", 0, false, true}};
  return kinds;
}

// Every n-th call is tried: n is `some`, or 1 where ANTISD_FAULTS=all (tools/fault_test).
inline std::int64_t fault_stride(std::int64_t some) {
  const char* const wanted = std::getenv("ANTISD_FAULTS");
  return wanted != nullptr && std::string(wanted) == "all" ? 1 : some;
}

// All files below a folder with their bytes, read without this project's own readers.
using Tree = std::map<std::string, std::string>;

inline Tree read_tree(const std::filesystem::path& folder) {
  Tree tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ostringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    tree[entry.path().lexically_relative(folder).string()] = bytes.str();
  }
  return tree;
}

}  // namespace antisd::testing
