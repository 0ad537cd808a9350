#include "io/installation.h"

#include <cstdlib>
#include <string_view>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace antisd::inline io {
namespace {

namespace fs = std::filesystem;

// Prints the package's folder, or nothing. The empty entry of sys.path is the working directory.
constexpr const char* kPackageQuestion = R"(
import importlib.util, sys
sys.path = [folder for folder in sys.path if folder]
found = importlib.util.find_spec(sys.argv[1])
print(next(iter(found and found.submodule_search_locations or []), ""), end="")
)";

// What the interpreter prints; empty if it cannot be started.
std::string answer_of(const fs::path& python, const std::string& package) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  const char* arguments[] = {python.c_str(), "-c", kPackageQuestion, package.c_str(), nullptr};
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, python.c_str(), &actions, nullptr, const_cast<char**>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  if (failed == 0) {
    for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
    ::waitpid(pid, nullptr, 0);
  }
  ::close(ends[0]);
  return text;
}

// python3 beside the program, then the first of PATH.
std::vector<fs::path> interpreters(const fs::path& program) {
  std::vector<fs::path> found;
  const auto add = [&](const fs::path& folder) {
    const fs::path python = folder / "python3";
    if (::access(python.c_str(), X_OK) == 0) found.push_back(python);
    return !found.empty();
  };
  add(program.parent_path());
  const std::size_t beside = found.size();
  std::string_view rest = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  while (!rest.empty() && found.size() == beside) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) add(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return found;
}

// PREFIX/lib/python3.N/site-packages/NAME, if there is one such folder.
std::optional<fs::path> beside_program(const std::string& name, const fs::path& program) {
  if (program.parent_path().filename() != "bin") return std::nullopt;
  std::optional<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(program.parent_path().parent_path() / "lib", ignored)) {
    const fs::path package = entry.path() / "site-packages" / name;
    if (!entry.path().filename().string().starts_with("python3") ||
        !fs::is_directory(package, ignored))
      continue;
    if (found) return std::nullopt;  // several Pythons: the first python3 decides
    found = package;
  }
  return found;
}

}  // namespace

fs::path own_program() {
  return fs::read_symlink("/proc/self/exe");
}

std::vector<fs::path> own_folders(const fs::path& program) {
  const fs::path folder = program.parent_path();
  return {folder, folder / "lib", folder.parent_path() / "lib/antisd"};
}

std::vector<fs::path> own_folders() {
  return own_folders(own_program());
}

std::optional<fs::path> find_python_package(const std::string& name, const fs::path& program) {
  if (const std::optional<fs::path> found = beside_program(name, program)) return found;
  for (const fs::path& python : interpreters(program)) {
    if (const std::string folder = answer_of(python, name); !folder.empty()) return folder;
  }
  return std::nullopt;
}

std::optional<fs::path> find_python_package(const std::string& name) {
  return find_python_package(name, own_program());
}

}  // namespace antisd::inline io
