#include "io/installation.h"

#include <cstdlib>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd::inline io {
namespace {

namespace fs = std::filesystem;
using ::testing::Eq;
using ::testing::Optional;

// A prefix with bin/antisd, as pip makes it, and a PATH with nothing in it.
class FindPythonPackage : public ::testing::Test {
 protected:
  FindPythonPackage() {
    ::setenv("PATH", (folder_ / "nowhere").c_str(), 1);
    fs::create_directories(folder_ / "bin");
  }
  ~FindPythonPackage() override { ::setenv("PATH", before_.c_str(), 1); }

  fs::path add_package(const std::string& python, const std::string& name) const {
    const fs::path package = folder_ / "lib" / python / "site-packages" / name;
    fs::create_directories(package);
    return package;
  }

  // An interpreter that prints `text`.
  void add_interpreter(const fs::path& folder, const std::string& text) const {
    fs::create_directories(folder);
    write_file_atomically(folder / "python3", "#!/bin/sh\nprintf '" + text + "'\n");
    fs::permissions(folder / "python3", fs::perms::owner_all);
  }

  std::optional<fs::path> find() const {
    return find_python_package("torch", folder_ / "bin/antisd");
  }

  testing::TemporaryFolder folder_;
  std::string before_ = std::getenv("PATH");
};

TEST_F(FindPythonPackage, LooksIntoTheProgramsOwnPrefix) {
  EXPECT_EQ(find(), std::nullopt);
  add_package("python3.11", "numpy");
  add_package("python2.7", "torch");
  EXPECT_EQ(find(), std::nullopt);
  const fs::path package = add_package("python3.11", "torch");
  EXPECT_THAT(find(), Optional(Eq(package)));
}

TEST_F(FindPythonPackage, AsksPythonWhereThePrefixDoesNotTell) {
  add_interpreter(folder_ / "elsewhere", "/from/path/torch");
  ::setenv("PATH", fmt::format("{0}/nowhere::{0}/elsewhere", folder_.path().string()).c_str(), 1);
  EXPECT_THAT(find(), Optional(Eq(fs::path("/from/path/torch"))));
  add_interpreter(folder_ / "bin", "");  // the prefix's own has none
  EXPECT_THAT(find(), Optional(Eq(fs::path("/from/path/torch"))));
  add_interpreter(folder_ / "bin", "/beside/torch");
  EXPECT_THAT(find(), Optional(Eq(fs::path("/beside/torch"))));
  add_package("python3.11", "torch");
  add_package("python3.12", "torch");  // only the interpreter knows which of them is meant
  EXPECT_THAT(find(), Optional(Eq(fs::path("/beside/torch"))));
}

// The working directory does not count, although `python -c` would import from it.
TEST_F(FindPythonPackage, IsNotTakenFromTheWorkingDirectory) {
  ::setenv("PATH", before_.c_str(), 1);
  const fs::path here = fs::current_path();
  fs::create_directories(folder_ / "made_up_package");
  write_file_atomically(folder_ / "made_up_package/__init__.py", "");
  fs::current_path(folder_.path());
  EXPECT_EQ(find_python_package("made_up_package"), std::nullopt);
  ::setenv("PYTHONPATH", folder_.path().c_str(), 1);
  EXPECT_THAT(find_python_package("made_up_package"),
              Optional(Eq(folder_.path() / "made_up_package")));
  ::unsetenv("PYTHONPATH");
  fs::current_path(here);
}

}  // namespace
}  // namespace antisd::inline io
