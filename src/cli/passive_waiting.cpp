#include "cli/passive_waiting.h"

#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include <unistd.h>

#include "core/thread_pool.h"

namespace antisd::inline cli {
namespace {

constexpr const char* kMark = "ANTISD_STARTED_ANEW";
constexpr const char* kPolicy = "OMP_WAIT_POLICY";
// The variables that set how GNU's and LLVM's runtimes wait.
constexpr std::array kWaiting = {kPolicy, "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY"};

// Commands that compute with tensors in this process; `sweep` and `demo` start other processes.
bool has_tensor_threads(int argc, char** argv) {
  static const std::set<std::string_view> commands = {"train",    "pretrain", "eval",   "score",
                                                      "generate", "serve",    "inspect"};
  if (argc < 2 || !commands.contains(argv[1]) || available_threads() == 1) return false;
  for (int i = 2; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h" || argument == "--dry-run") return false;
    if (argument == "--threads=1") return false;
    if (argument == "--threads" && i + 1 < argc && std::strcmp(argv[i + 1], "1") == 0) return false;
  }
  return true;
}

}  // namespace

void wait_passively(int argc, char** argv) {
  if (std::getenv(kMark) != nullptr) {
    unsetenv(kMark);
    unsetenv(kPolicy);  // already read by the runtime
    return;
  }
  for (const char* name : kWaiting) {
    if (std::getenv(name) != nullptr) return;
  }
  if (!has_tensor_threads(argc, argv)) return;
  std::array<char, PATH_MAX> program = {};
  // By its path, so that the process keeps its name.
  if (readlink("/proc/self/exe", program.data(), program.size() - 1) <= 0) return;
  setenv(kMark, "1", 1);
  setenv(kPolicy, "passive", 1);
  execv(program.data(), argv);
  unsetenv(kMark);  // the binary was removed or replaced: continue with spinning threads
  unsetenv(kPolicy);
}

}  // namespace antisd::inline cli
