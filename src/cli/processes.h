// --processes: a command that starts the ranks of its run itself.
//
//   std::string processes;
//   add_processes_option(app, processes);
//   // parsed, the command begins:
//   const std::optional<int> status = run_as_launcher(processes, {.gpus = visible_gpus});
//   if (status) std::exit(*status);
//   const Place place = find_place(process_environment());  // this process is a rank, or alone
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "dist/place.h"

namespace antisd::inline cli {

struct LauncherSettings {
  std::function<int()> gpus;  // how many are visible; asked only for "gpus"
  double silence_s = 30;      // dist.silence_s
};

// N or "gpus"; empty unless given.
void add_processes_option(CLI::App& app, std::string& processes);

// How many ranks this process has to start: 1 if it is a rank itself, or if it was not asked for
// any. InputError for "gpus" without a GPU, and if torchrun or srun have started the ranks already.
int ranks_to_start(const std::string& processes, const Place& place,
                   const std::function<int()>& gpus);

// If there are several to start, runs this program as all of them and returns the exit status
// (dist/launch.h). Otherwise returns nothing at once, and the command goes on. Call it before
// threads start and before anything is written.
std::optional<int> run_as_launcher(const std::string& processes, const LauncherSettings& settings);

}  // namespace antisd::inline cli
