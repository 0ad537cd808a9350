// `sweep`: a grid of training runs.

#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/finite_number.h"
#include "cli/interrupt.h"
#include "cli/sweep_run.h"
#include "cli/usage.h"
#include "config/run_config.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace antisd::inline cli {
namespace {

struct SweepCommandOptions {
  std::vector<std::string> arguments;  // a file, then key=v1,v2
  std::string methods, seeds, report;
  int jobs = 0, threads = 1, processes = 1;
  double memory_gb = 0;
  std::string device = "auto";
  bool quiet = false;
};

// A comma inside a list belongs to the list; several lists are separated by their brackets.
void add_axis(Grid& grid, const std::string& argument) {
  const std::size_t equals = argument.find('=');
  const std::string key = argument.substr(0, equals);
  const RunConfig known;
  const Option* const option = known.options().find(key);
  const bool is_list = option != nullptr && option->type_text().starts_with("list");
  if (is_list && argument.find('[') == std::string::npos) {
    grid.add_single(key, argument.substr(equals + 1));
  } else {
    grid.add_assignment(argument);
  }
}

SweepSettings make_settings(const SweepCommandOptions& options) {
  SweepSettings settings;
  if (!options.methods.empty()) settings.grid.add("method.name", options.methods);
  std::string directory;
  for (const std::string& argument : options.arguments) {
    if (argument.starts_with("record.dir=")) {
      directory = argument.substr(argument.find('=') + 1);
    } else if (argument.find('=') != std::string::npos) {
      add_axis(settings.grid, argument);
    } else if (&argument == &options.arguments.front()) {
      settings.config = argument;
    } else {
      throw InputError(
          "not of the form key=v1,v2",
          {.where = "'" + argument + "'", .remedy = "only one file can be given, first"});
    }
  }
  if (!options.seeds.empty()) settings.grid.add("train.seed", options.seeds);
  if (directory.empty()) {
    RunConfig config;
    if (!settings.config.empty()) config.options().load_toml(settings.config);
    directory = config.record.dir;
  }
  settings.directory = directory;
  settings.threads = options.threads;
  settings.processes = options.processes;
  settings.device = options.device;
  settings.limits = {
      .jobs = options.jobs > 0
                  ? options.jobs
                  : std::max(1, available_threads() / (options.threads * options.processes)),
      .memory_bytes = options.memory_gb > 0 ? static_cast<std::int64_t>(options.memory_gb * 1e9)
                                            : default_memory_limit()};
  return settings;
}

}  // namespace

std::function<int()> add_sweep(CLI::App& app) {
  const auto options = std::make_shared<SweepCommandOptions>();
  app.add_option("CONFIG key=values", options->arguments,
                 "a TOML file, then overrides; a key with several values is an axis of the grid");
  app.add_option("--methods", options->methods, "values of method.name, e.g. grpo,sd,antisd");
  app.add_option("--seeds", options->seeds, "values of train.seed, e.g. 0-4 or 0,1,7");
  app.add_option("--jobs", options->jobs, "runs at a time; 0: as many as the cores allow")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_option("--threads", options->threads, "threads per run, or per rank of a run")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--processes", options->processes, "ranks of each run, on this machine")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--memory", options->memory_gb,
                 "GB of memory for all runs together; 0: nine tenths of the free memory. The first "
                 "run shows how much one needs")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->check(finite_number());
  app.add_option("--device", options->device, "cpu, cuda, cuda:N or auto, for every run")
      ->capture_default_str();
  app.add_option("--report", options->report, "file of the report page [record.dir/report.html]");
  app.add_flag("--quiet", options->quiet, "nothing but errors on standard error");
  add_keys_footer(
      app,
      "Each run has a normal run directory below record.dir. Started again, the sweep continues: "
      "finished runs are kept, others are resumed.\n");
  return [options] {
    const SweepSettings settings = make_settings(*options);
    outlive_refused_writes();
    const std::atomic<bool>& interrupted = catch_interrupts();
    Console console({.quiet = options->quiet});
    return sweep_and_report(settings, {.page = options->report, .quiet = options->quiet}, console,
                            [&] { return interrupted.load(); });
  };
}

}  // namespace antisd::inline cli
