// One process at a time writes into a run directory.
#pragma once

#include <filesystem>

namespace antisd::inline run {

class RunLock {
 public:
  // Creates the directory if it is missing. InputError if another process holds the lock, RunError
  // if the system fails. The lock ends with the process, however that ends.
  explicit RunLock(const std::filesystem::path& run);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace antisd::inline run
