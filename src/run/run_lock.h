// One process at a time writes into a run directory.
#pragma once

#include <filesystem>

namespace antisd::inline run {

class RunLock {
 public:
  // Makes the directory where it is missing. InputError where another process holds it, RunError
  // where the system refuses. The lock goes with the process, however that ends.
  explicit RunLock(const std::filesystem::path& run);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace antisd::inline run
