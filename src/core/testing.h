// For tests only: paths of fixtures, and of the shared real data, which may be absent.
#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.h"

namespace antisd::testing {

// A file of the repository's own fixtures: testdata/<name>.
inline std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(ANTISD_SOURCE_DIR) / "testdata" / name;
}

// ../shared/data/<name>; it exists only where real data lies beside the checkout.
inline std::filesystem::path shared_data(const std::string& name) {
  return std::filesystem::path(ANTISD_SOURCE_DIR) / ".." / "shared" / "data" / name;
}

// An empty folder for the running test, removed by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "antisd-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw RunError("cannot make a temporary folder");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// The message of the Error that `action` throws; fails the test if it throws none.
template <typename Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.message();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

}  // namespace antisd::testing

// Skips the test, with the reason, where the shared data folder is absent.
#define ANTISD_NEEDS_SHARED(path)     \
  if (!std::filesystem::exists(path)) \
  GTEST_SKIP() << "needs " << (path).lexically_normal().string() << ", which is not here"
