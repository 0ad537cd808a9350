// `train`: reinforcement learning.

#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/weights/dry_run.h"
#include "cli/weights/training_run.h"
#include "run/stop_signals.h"

namespace antisd::inline cli {

std::function<int()> add_train(CLI::App& app) {
  struct Options {
    RunOptions run;
    bool dry_run = false;
  };
  const auto options = std::make_shared<Options>();
  add_run_options(app, options->run);
  app.add_flag("--dry-run", options->dry_run,
               "read data, tokenizer and templates, show prompts, sizes and memory, and say what "
               "would fail; needs no weights and writes nothing");
  return [options] {
    RunConfig config;
    read_config(options->run, config);
    Console console({.quiet = options->run.quiet});
    if (options->dry_run) {
      dry_run(config, options->run, console, std::cout);
      return 0;
    }
    outlive_refused_writes();
    const StopSignals signals;
    return run_training(config, options->run, console, [] { return StopSignals::received(); });
  };
}

}  // namespace antisd::inline cli
