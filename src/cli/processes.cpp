#include "cli/processes.h"

#include <charconv>

#include <fmt/format.h>

#include "core/error.h"
#include "dist/launch.h"

namespace antisd::inline cli {
namespace {

constexpr int kMostProcesses = 1024;
constexpr const char* kGpus = "gpus";
constexpr const char* kProcesses = "--processes";

std::optional<int> process_count(const std::string& text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (count < 1 || count > kMostProcesses) return std::nullopt;
  return count;
}

}  // namespace

void add_processes_option(CLI::App& app, std::string& processes) {
  app.add_option(kProcesses, processes,
                 "ranks to start on this machine, each with a part of the work: 1 to 1024, or "
                 "gpus: one for each visible GPU")
      ->type_name("N|gpus")
      ->check([](const std::string& text) {
        if (text == kGpus || process_count(text)) return std::string();
        return fmt::format("'{}' is neither a number from 1 to {} nor '{}'", text, kMostProcesses,
                           kGpus);
      });
}

int ranks_to_start(const std::string& processes, const Place& place,
                   const std::function<int()>& gpus) {
  if (processes.empty() || place.source == kProcesses) return 1;
  if (!place.source.empty())
    throw InputError(fmt::format("this process already is rank {} of {}, started by {}", place.rank,
                                 place.size, place.source),
                     {.where = kProcesses,
                      .remedy = fmt::format("leave it out, or start the command without {}",
                                            place.source == "Slurm" ? "srun" : place.source)});
  if (processes != kGpus) return process_count(processes).value();
  const int visible = gpus();
  if (visible == 0)
    throw InputError("no GPU is visible",
                     {.where = "--processes gpus",
                      .remedy = "give a number of processes; `antisd doctor` says why"});
  return visible;
}

std::optional<int> run_as_launcher(const std::string& processes, const LauncherSettings& settings) {
  const int ranks = ranks_to_start(processes, find_place(process_environment()), settings.gpus);
  if (ranks == 1) return std::nullopt;
  return launch({.processes = ranks, .silence_s = settings.silence_s});
}

}  // namespace antisd::inline cli
