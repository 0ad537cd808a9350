// `quickstart`: a first training run with settings that fit the machine, evaluated before and
// after.

#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/report_file.h"
#include "cli/weights/dry_run.h"
#include "cli/weights/quick_setup.h"
#include "cli/weights/rank_session.h"
#include "cli/weights/training_run.h"
#include "core/error.h"
#include "eval/results/paired.h"
#include "eval/results/run_results.h"
#include "eval/results/text_table.h"
#include "run/checkpoint/checkpoint.h"
#include "run/run_files.h"
#include "run/stop_signals.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

struct QuickOptions {
  QuickRequest request;
  bool dry_run = false;
};

int train_quickly(const QuickRequest& request, const RunConfig& config, Console& console,
                  const Place& place) {
  RunOptions run = request.run;
  run.resume = holds_a_run(config.record.dir);
  const StopSignals signals;
  return run_on_ranks(place, {config.dist, identity_of("quickstart", config)},
                      [&](Communicator& ranks) {
                        return run_training(config, run, console, {place, ranks},
                                            [] { return StopSignals::received(); });
                      });
}

std::string outcome_text(const fs::path& run, const RunResults& results) {
  if (results.evaluations.size() < 2) return "The held-out problems were not evaluated twice.";
  const StepEvaluation &before = results.evaluations.front(), &after = results.evaluations.back();
  const Difference gain =
      compare_evaluations(run / evaluation_folder(after.step), run / evaluation_folder(before.step))
          .average;
  const bool clear = gain.interval.low > 0 || gain.interval.high < 0;
  return fmt::format(
      "Held-out problems solved: {} % before, {} % after {} steps; difference {} "
      "points, 95 % interval {}{}.",
      percent_text(before.summary.average), percent_text(after.summary.average), after.step,
      percent_text(gain.mean), interval_text(gain.interval), clear ? "" : ", so it may be chance");
}

// Three lines: what came out, where it is, what to do next.
void tell_outcome(const QuickRequest& request, const RunConfig& config) {
  const fs::path run = config.record.dir, page = request.file("report.html");
  write_report({Folder(run)}, "Quickstart: before and after", page);
  const NewestCheckpoint newest = find_newest_whole(run / kCheckpointsFolder);
  const bool adapters = config.model.lora.rank > 0;
  std::cout << outcome_text(run, read_run_results(run)) << "\n";
  std::cout << fmt::format("Report: {}", page.string());
  if (newest.found)
    std::cout << fmt::format("; trained {}: {}", adapters ? "adapters" : "model",
                             (newest.found->path / (adapters ? "adapter" : "model")).string());
  std::cout << fmt::format(
      "\nNext: `antisd quickstart --dir {} --steps {}` trains on; edit {} for your own settings "
      "(docs/first-run.md).\n",
      request.directory, 4 * config.train.steps, request.settings().string());
}

int quickstart(const QuickOptions& options) {
  const QuickRequest& request = options.request;
  const Place place = this_place();
  if (place.size > 1) {
    throw InputError("quickstart is one process",
                     {.remedy = "let it write run.toml (--dry-run prints it), then `antisd train "
                                "run.toml --processes gpus`"});
  }
  Console console({.quiet = request.run.quiet});
  outlive_refused_writes();
  RunConfig config;
  if (request.is_set_up()) {
    read_setup(request, config, console);
    if (options.dry_run) {
      dry_run(config, request.run, console, std::cout);
      return 0;
    }
  } else {
    const QuickSetup setup = choose_setup(request, config, console);
    if (options.dry_run) {
      std::cout << setup.toml;
      return 0;
    }
    write_setup(request, setup, config, console);
  }
  const int status = train_quickly(request, config, console, place);
  if (status == kStoppedStatus) console.info("stopped; the same command continues from here");
  if (status == 0) tell_outcome(request, config);
  return status;
}

}  // namespace

std::function<int()> add_quickstart(CLI::App& app) {
  const auto options = std::make_shared<QuickOptions>();
  QuickRequest& request = options->request;
  app.add_option("key=value", request.assignments, "settings that are not to be chosen");
  const CLI::Option* model =
      app.add_option("--model", request.model, "a Hugging Face model")->capture_default_str();
  const CLI::Option* data =
      app.add_option("--data", request.data,
                     "problems with answers or tests: a file, a folder with train and test files, "
                     "or countdown:3")
          ->capture_default_str();
  app.add_option("--dir", request.directory, "folder of run.toml, the run and the report")
      ->capture_default_str();
  app.add_option("--steps", request.steps, "training steps; default: by the machine")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--device", request.run.device,
                 "cpu, cuda, cuda:N, or auto: a GPU if there is one")
      ->capture_default_str();
  app.add_option("--threads", request.run.threads, "as for train")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_flag("--dry-run", options->dry_run,
               "check machine, model and data, print run.toml, write and train nothing");
  app.add_flag("--quiet", request.run.quiet, "only warnings and results");
  app.footer("If it is interrupted, the same command continues.");
  return [options, model, data] {
    options->request.named_model = model->count() > 0;
    options->request.named_data = data->count() > 0;
    return quickstart(*options);
  };
}

}  // namespace antisd::inline cli
