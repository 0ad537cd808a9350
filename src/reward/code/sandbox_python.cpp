#include "reward/code/sandbox_python.h"

#include <cstdlib>
#include <set>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "io/json.h"
#include "io/process/pipes.h"

extern char** environ;

namespace antisd::inline reward {
namespace {

namespace fs = std::filesystem;

constexpr const char* kQuestion = R"(
import importlib.util, json, os, sys, sysconfig
paths = sysconfig.get_paths()
where = [p for p in sys.path if p and os.path.isdir(p)]
print(json.dumps({
  "executable": os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable),
  "version": list(sys.version_info[:3]), "path": where,
  "readable": where + [paths[k] for k in ("stdlib", "platstdlib")],
  "multiarch": sysconfig.get_config_var("MULTIARCH") or "", "libdir": sysconfig.get_config_var("LIBDIR") or "",
  "numpy": importlib.util.find_spec("numpy") is not None}))
)";

std::string default_python() {
  if (access("/usr/bin/python3", X_OK) == 0) return "/usr/bin/python3";
  std::string_view rest = std::getenv("PATH") ? std::getenv("PATH") : "";
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const fs::path candidate = fs::path(rest.substr(0, colon)) / "python3";
    if (access(candidate.c_str(), X_OK) == 0) return candidate.string();
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  throw InputError("no python3 was found",
                   {.remedy = "install python3 and python3-numpy, or name an interpreter"});
}

std::string output_of(const std::string& python) {
  auto [read_end, write_end] = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;  // resets signals that this program ignores
  posix_spawnattr_init(&attributes);
  sigset_t ignored_here;
  sigemptyset(&ignored_here);
  sigaddset(&ignored_here, SIGPIPE);
  sigaddset(&ignored_here, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &ignored_here);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const char* arguments[] = {python.c_str(), "-I", "-c", kQuestion, nullptr};
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, python.c_str(), &actions, &attributes,
                                 const_cast<char**>(arguments), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  write_end.reset();
  if (failed != 0)
    throw InputError("the python interpreter cannot be started",
                     {.where = python, .remedy = "name another one"});
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(read_end.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  int status = 0;
  waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw InputError("the python interpreter does not work",
                     {.where = python, .remedy = "name another one"});
  return text;
}

// Sorted, links resolved, without folders inside other listed folders.
std::vector<fs::path> tidy(const std::set<fs::path>& paths) {
  std::vector<fs::path> kept;
  for (const fs::path& path : paths) {
    const bool covered = std::any_of(kept.begin(), kept.end(), [&](const fs::path& outer) {
      return std::mismatch(outer.begin(), outer.end(), path.begin(), path.end()).first ==
             outer.end();
    });
    if (!covered) kept.push_back(path);
  }
  return kept;
}

}  // namespace

Interpreter find_interpreter(const std::string& path) {
  const std::string python = path.empty() ? default_python() : path;
  Json answer;
  try {
    answer = parse_json(output_of(python), python);
  } catch (const InputError&) {
    throw InputError("this is not a working python 3 interpreter",
                     {.where = python, .remedy = "name another one"});
  }
  Interpreter found;
  const auto version = answer["version"].get<std::vector<int>>();
  found.version = fmt::format("{}", fmt::join(version, "."));
  if (version < std::vector<int>{3, 9})
    throw InputError("python " + found.version + " is too old for graded programs",
                     {.where = python, .remedy = "name one of version 3.9 or later"});
  found.executable = answer["executable"].get<std::string>();
  found.import_path = answer["path"].get<std::vector<std::string>>();
  found.numpy = answer["numpy"].get<bool>();

  std::set<fs::path> readable;
  const auto add = [&](const fs::path& candidate) {
    std::error_code ignored;
    const fs::path real = fs::canonical(candidate, ignored);
    if (!ignored) readable.insert(real);
  };
  add(found.executable);
  for (const Json& folder : answer["readable"])
    add(folder.get<std::string>());
  const std::string multiarch = answer["multiarch"].get<std::string>();
  if (!multiarch.empty())
    for (const char* base : {"/usr/lib/", "/lib/"})
      add(base + multiarch);
  // The dynamic linker and, on systems other than Debian, the shared libraries.
  for (const char* folder : {"/lib64", "/usr/lib64", "/etc/ld.so.cache", "/etc/alternatives"})
    add(folder);
  const std::string libdir = answer["libdir"].get<std::string>();
  if (libdir.ends_with("/lib") && libdir != "/usr/lib" && libdir != "/lib") add(libdir);
  found.readable = tidy(readable);
  return found;
}

}  // namespace antisd::inline reward
