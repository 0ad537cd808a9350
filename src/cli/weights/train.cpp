// `train`: reinforcement learning.

#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/processes.h"
#include "cli/weights/device_choice.h"
#include "cli/weights/dry_run.h"
#include "cli/weights/rank_session.h"
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
    if (options->dry_run) {
      Console console({.quiet = options->run.quiet});
      dry_run(config, options->run, console, std::cout);
      return 0;
    }
    if (const std::optional<int> status = run_as_launcher(
            options->run.processes, {.gpus = visible_gpus, .silence_s = config.dist.silence_s}))
      return *status;
    const Place place = this_place();
    Console console(console_options(place, options->run.quiet));
    outlive_refused_writes();
    const StopSignals signals;
    return run_on_ranks(place, {config.dist, identity_of("train", config)},
                        [&](Communicator& ranks) {
                          return run_training(config, options->run, console, {place, ranks},
                                              [] { return StopSignals::received(); });
                        });
  };
}

}  // namespace antisd::inline cli
