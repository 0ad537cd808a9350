// For tests only: a Hugging Face cache in a temporary folder, and huggingface_hub itself, where the
// reference packages are installed.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd::testing {

// Variables of the environment until the end of the test; nothing: it is not set.
class Environment {
 public:
  void set(const std::string& name, const std::optional<std::string>& value) {
    const char* before = std::getenv(name.c_str());
    before_.try_emplace(name, before ? std::optional<std::string>(before) : std::nullopt);
    apply(name, value);
  }
  ~Environment() {
    for (const auto& [name, value] : before_)
      apply(name, value);
  }

 private:
  static void apply(const std::string& name, const std::optional<std::string>& value) {
    if (value)
      setenv(name.c_str(), value->c_str(), 1);
    else
      unsetenv(name.c_str());
  }
  std::map<std::string, std::optional<std::string>> before_;
};

inline std::filesystem::path reference_python() {
  return std::filesystem::path(ANTISD_SOURCE_DIR) / ".deps/reference/bin/python";
}

// A cache with files in place, and HF_HUB_CACHE that names it.
class HubCache {
 public:
  HubCache() { environment_.set("HF_HUB_CACHE", folder_.path().string()); }

  // repo: "models--Qwen--Qwen3-0.6B". The file is a link to a blob, as huggingface_hub makes it.
  void add_file(const std::string& repo, const std::string& commit, const std::string& file,
                const std::string& text) {
    namespace fs = std::filesystem;
    const fs::path blobs = folder_.path() / repo / "blobs";
    const fs::path link = folder_.path() / repo / "snapshots" / commit / file;
    fs::create_directories(blobs);
    fs::create_directories(link.parent_path());
    const fs::path blob = blobs / ("blob" + std::to_string(++blobs_));
    write_file_atomically(blob, text);
    fs::create_symlink(fs::relative(blob, link.parent_path()), link);
  }

  void add_ref(const std::string& repo, const std::string& name, const std::string& commit) {
    const std::filesystem::path file = folder_.path() / repo / "refs" / name;
    std::filesystem::create_directories(file.parent_path());
    write_file_atomically(file, commit);
  }

  std::filesystem::path snapshot(const std::string& repo, const std::string& commit) const {
    return folder_.path() / repo / "snapshots" / commit;
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  Environment environment_;
  int blobs_ = 0;
};

}  // namespace antisd::testing

#define ANTISD_NEEDS_REFERENCE()                                     \
  if (!std::filesystem::exists(antisd::testing::reference_python())) \
  GTEST_SKIP() << "needs the reference packages: setup/run --reference"
