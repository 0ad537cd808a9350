#include <iostream>

#include <fmt/format.h>

#include "cli/build_info.h"
#include "cli/command.h"

namespace antisd::inline cli {

std::function<int()> add_version(CLI::App&) {
  return [] {
    std::cout << fmt::format(
        "antisd {}\nrevision: {}\ncompiler: {}\nbuild: {}\ntorch: {}\ncuda: {}\n",
        kBuildInfo.version, kBuildInfo.revision, kBuildInfo.compiler, kBuildInfo.build_type,
        kBuildInfo.torch, kBuildInfo.cuda);
    return 0;
  };
}

// Only for the list of commands: the command line turns `help` into --help.
std::function<int()> add_help(CLI::App&) {
  return [] { return 0; };
}

}  // namespace antisd::inline cli
