// `eval`: benchmarks x n samples -> avg@n and pass@k with intervals.

#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/processes.h"
#include "cli/usage.h"
#include "cli/weights/device_choice.h"
#include "cli/weights/model_options.h"
#include "cli/weights/model_parts.h"
#include "cli/weights/rank_session.h"
#include "core/error.h"
#include "eval/evaluator.h"
#include "eval/results/paired.h"
#include "hub/cache.h"
#include "model/adapter_files.h"
#include "run/checkpoint/checkpoint.h"
#include "run/run_files.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

struct EvalCommandOptions {
  ModelOptions model;
  std::vector<std::string> arguments;  // a file, then key=value
  std::string out, compare;
  std::vector<std::string> against;
  std::int64_t seed = -1;
  bool again = false, quiet = false;
  std::string processes;
};

// What MODEL refers to.
struct Subject {
  fs::path model;                    // the Hugging Face directory, or an adapter's
  std::optional<std::int64_t> step;  // if it is a checkpoint
  fs::path run;                      // the run directory that holds it; empty: none
};

Subject find_subject(const std::string& model, Console& console) {
  const fs::path path = model_folder(model);
  fs::path checkpoint = fs::absolute(path).lexically_normal();
  if (!checkpoint.has_filename()) checkpoint = checkpoint.parent_path();
  if (fs::exists(checkpoint / kCheckpointsFolder)) {
    const NewestCheckpoint newest = find_newest_whole(checkpoint / kCheckpointsFolder);
    for (const SkippedCheckpoint& skipped : newest.skipped)
      console.warn(fmt::format("skipped {}: {}", skipped.path.string(), skipped.reason));
    if (!newest.found) {
      throw InputError("the run has no complete checkpoint",
                       {.where = path.string(), .remedy = "train it further, or name a model"});
    }
    checkpoint = newest.found->path;
    console.info(fmt::format("evaluating {}", checkpoint.string()));
  }
  const bool is_part = checkpoint.filename() == "model" || checkpoint.filename() == "adapter";
  if (is_part && fs::exists(checkpoint.parent_path() / "MANIFEST.json"))
    checkpoint = checkpoint.parent_path();
  const bool has_adapter = is_adapter_directory(checkpoint / "adapter");
  if (!has_adapter && !fs::exists(checkpoint / "model" / "config.json"))
    return {.model = path, .step = {}, .run = {}};
  Subject subject{.model = checkpoint / (has_adapter ? "adapter" : "model"), .step = {}, .run = {}};
  subject.step = step_of_name(checkpoint.filename().string());
  if (subject.step && checkpoint.parent_path().filename() == kCheckpointsFolder)
    subject.run = checkpoint.parent_path().parent_path();
  return subject;
}

void read_config(const EvalCommandOptions& options, const Subject& subject, RunConfig& config,
                 Console& console) {
  const bool has_file =
      !options.arguments.empty() && options.arguments.front().find('=') == std::string::npos;
  if (!has_file && !subject.run.empty() && fs::exists(subject.run / kConfigFile)) {
    console.info(fmt::format("settings of {}", (subject.run / kConfigFile).string()));
    config.options().load_toml(subject.run / kConfigFile);
  }
  const IntegerMap counts_of_run = config.eval.n;
  for (std::size_t i = 0; i < options.arguments.size(); ++i) {
    const std::string& argument = options.arguments[i];
    if (i == 0 && has_file) {
      config.options().load_toml(argument);
    } else if (argument.find('=') != std::string::npos) {
      config.options().assign(argument);
    } else {
      throw InputError(
          "not of the form key=value",
          {.where = "'" + argument + "'", .remedy = "only one file can be given, after MODEL"});
    }
  }
  if (options.seed >= 0) config.options().assign(fmt::format("train.seed={}", options.seed));
  config.resolve();
  drop_unknown_sample_counts(config.eval, counts_of_run);
  if (config.eval.benches.empty()) {
    throw InputError("no benchmark is named",
                     {.where = "eval.benches",
                      .remedy = "e.g. eval.benches=aime24,math500 eval.dir=data/bench"});
  }
}

fs::path default_folder(const Subject& subject) {
  if (!subject.run.empty()) return subject.run / evaluation_folder(*subject.step);
  if (const std::optional<Snapshot> snapshot = snapshot_of(subject.model))
    return fs::path("eval") / fs::path(snapshot->repo.name).filename();
  fs::path model = fs::absolute(subject.model).lexically_normal();
  if (!model.has_filename()) model = model.parent_path();
  return fs::path("eval") / model.filename();
}

// What is recorded: a path, or a name with its revision.
std::string label_of(const Subject& subject) {
  const std::optional<Snapshot> snapshot = snapshot_of(subject.model);
  return snapshot ? text_of(snapshot->repo) : subject.model.string();
}

int evaluate_as(Communicator& ranks, const Place& place, const EvalCommandOptions& options,
                const Subject& subject, const RunConfig& config, Console& console) {
  const auto warn = [&](const std::string& text) { console.warn(text); };
  ModelOptions model_options = options.model;
  model_options.model = subject.model.string();
  const fs::path files = files_of(model_options);
  const PromptRenderer renderer = make_renderer(files, config.data, warn);
  Evaluator evaluator(config, renderer, find_stop_ids(files, renderer.tokenizer(), warn), console,
                      ranks);
  for (const Benchmark& benchmark : evaluator.benchmarks()) {
    for (const std::string& note : benchmark.notes)
      console.info(note);
    if (benchmark.without_tests > 0)
      console.warn(fmt::format("{}: {} problems have no tests and are left out", benchmark.name,
                               benchmark.without_tests));
  }
  std::vector<std::string> training = options.against;
  if (training.empty()) training = config.data.train;
  const ColumnMap map = options.against.empty() ? config.data.map : ColumnMap();
  for (const std::string& note : overlap_notes(evaluator.benchmarks(), training, map))
    console.warn(note);

  if (model_options.base_dtype.empty()) model_options.base_dtype = config.model.base_dtype;
  const CausalLm model = open_model(model_options, place.local_rank);
  const std::atomic<bool>& interrupted = catch_interrupts();
  const fs::path folder = options.out.empty() ? default_folder(subject) : fs::path(options.out);
  const std::optional<EvalSummary> summary = evaluator.run(
      model,
      {.model = label_of(subject), .step = subject.step, .folder = folder, .again = options.again},
      [&] { return interrupted.load(); });
  if (summary && ranks.rank() > 0) return 0;
  if (!summary) {
    console.info(fmt::format("stopped; the same command continues from {}", folder.string()));
    return kInterruptedStatus;
  }
  console.info(fmt::format("{}\n{}", folder.string(), summary_table(*summary, config.eval.k)));
  Json out = to_json(*summary);
  if (!options.compare.empty()) {
    const PairedComparison comparison = compare_evaluations(folder, options.compare);
    console.info(fmt::format("against {}\n{}", options.compare, paired_text(comparison)));
    out["compared"] = to_json(comparison);
    out["compared"]["with"] = options.compare;
  }
  std::cout << to_json_line(out) << "\n";
  return 0;
}

// The exit status of the ranks, if this process is to start them.
std::optional<int> launch_ranks(const EvalCommandOptions& options) {
  if (options.processes.empty()) return std::nullopt;
  Console console({.quiet = true});  // rank 0 will say it
  RunConfig config;
  read_config(options, find_subject(options.model.model, console), config, console);
  return run_as_launcher(options.processes,
                         {.gpus = visible_gpus, .silence_s = config.dist.silence_s});
}

int evaluate(const EvalCommandOptions& options) {
  if (const std::optional<int> status = launch_ranks(options)) return *status;
  const Place place = this_place();
  Console console(console_options(place, options.quiet));
  const Subject subject = find_subject(options.model.model, console);
  RunConfig config;
  read_config(options, subject, config, console);
  outlive_refused_writes();
  return run_on_ranks(place, {config.dist, identity_of("eval " + subject.model.string(), config)},
                      [&](Communicator& ranks) {
                        return evaluate_as(ranks, place, options, subject, config, console);
                      });
}

}  // namespace

std::function<int()> add_eval(CLI::App& app) {
  const auto options = std::make_shared<EvalCommandOptions>();
  app.add_option("MODEL", options->model.model,
                 "Hugging Face model directory or name, a PEFT directory with a LoRA adapter, a "
                 "checkpoint, or a run "
                 "directory (its newest checkpoint)")
      ->required();
  app.add_option(
      "CONFIG key=value", options->arguments,
      "a TOML file, then overrides; for a run's checkpoint the default is the run's own file");
  app.add_option("-o,--out", options->out,
                 "folder for rows and summary.json; default: RUN/eval/step-N for a run's "
                 "checkpoint, eval/NAME for any other model");
  app.add_flag("--again", options->again, "first remove what the folder holds of these benchmarks");
  app.add_option("--compare", options->compare,
                 "folder of another evaluation to compare with, on the same problems");
  app.add_option("--against", options->against,
                 "training files to search for the benchmarks' problems; default: data.train");
  app.add_option("--seed", options->seed, "train.seed, the seed of the samples")
      ->check(CLI::NonNegativeNumber);
  add_device_options(app, options->model);
  app.add_flag("--quiet", options->quiet, "nothing but errors on standard error");
  add_keys_footer(
      app,
      "The summary goes to standard output as JSON, a table to standard error. SIGINT, SIGTERM or "
      "SIGHUP: graded\n"
      "problems stay in the folder, the exit status is 130, and the same command continues.\n"
      "It uses eval.*, reward.*, data.template, data.chat_options and model.base_dtype.\n");
  add_processes_option(app, options->processes);
  return [options] { return evaluate(*options); };
}

}  // namespace antisd::inline cli
