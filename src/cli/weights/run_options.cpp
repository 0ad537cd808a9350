#include "cli/weights/run_options.h"

#include <fstream>

#include <fmt/format.h>

#include "cli/build_info.h"
#include "cli/processes.h"
#include "cli/usage.h"
#include "config/config_changes.h"
#include "core/error.h"
#include "data/data_source.h"
#include "dist/agreement.h"
#include "hub/cache.h"
#include "model/causal_lm.h"
#include "ops/tensor_errors.h"
#include "run/recorder.h"
#include "run/run_files.h"
#include "run/run_lock.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

// The exact command line, from /proc.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  while (!text.empty() && text.back() == '\0')
    text.pop_back();
  for (char& c : text) {
    if (c == '\0') c = ' ';
  }
  return text;
}

// Reports how the run's configuration changed, and rejects changes that make it another run. A
// configuration that cannot be read (from a later version, or damaged) is not compared.
void compare_with_before(Recorder& recorder, const RunConfig& config,
                         const std::vector<std::string>& allowed) {
  const fs::path file = recorder.directory() / kConfigFile;
  RunConfig before;
  try {
    before.options().load_toml(file);
    before.resolve();  // keys that an older version did not write get their defaults
  } catch (const Error& error) {
    recorder.warn(
        fmt::format("cannot compare with the configuration that the run had: {}", error.message()));
    return;
  }
  const std::vector<ConfigChange> changes = config_changes(before, config);
  check_changes(changes, allowed, file.string());
  std::string warned, harmless;
  for (const ConfigChange& change : changes)
    (change.kind == ChangeKind::kHarmless ? harmless : warned) += "\n  " + change.text();
  if (!warned.empty()) recorder.warn("the run continues with another configuration:" + warned);
  if (!harmless.empty()) recorder.info("changed since the run was last started:" + harmless);
}

}  // namespace

void add_run_options(CLI::App& app, RunOptions& options) {
  app.add_option("CONFIG key=value", options.arguments, "a TOML file, then overrides")->required();
  app.add_flag("--resume", options.resume,
               "resume from the newest complete checkpoint of record.dir, also a finished run if "
               "train.steps is larger now");
  app.add_option("--allow", options.allow,
                 "with --resume: a key or section that may differ from the run's, e.g. "
                 "data.template or reward; can be repeated")
      ->type_name("KEY")
      ->allow_extra_args(false);
  app.add_option("--device", options.device, "cpu, cuda, cuda:N, or auto: a GPU if there is one")
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "model.dtype: auto, fp32, bf16 or fp16")
      ->check(CLI::IsMember({"auto", "fp32", "bf16", "fp16"}));
  app.add_option("--threads", options.threads,
                 "threads of the tensor library; 0: as many as the machine has free, adjusted "
                 "every step. They change no result")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_option("--seed", options.seed, "train.seed")->check(CLI::NonNegativeNumber);
  app.add_flag("--quiet", options.quiet, "nothing but errors on standard error");
  add_processes_option(app, options.processes);
  add_keys_footer(
      app,
      "SIGINT, SIGTERM, SIGHUP or SIGUSR1: the step is finished and saved, the exit status is 130; "
      "a second one exits at once.\n");
}

void read_config(const RunOptions& options, RunConfig& config) {
  if (!options.allow.empty() && !options.resume)
    throw InputError("--allow without --resume",
                     {.remedy = "it lists what may change when a run is resumed"});
  for (const std::string& argument : options.arguments) {
    if (argument.find('=') != std::string::npos) {
      config.options().assign(argument);
    } else if (&argument == &options.arguments.front()) {
      config.options().load_toml(argument);
    } else {
      throw InputError(
          "not of the form key=value",
          {.where = "'" + argument + "'", .remedy = "only one file can be given, first"});
    }
  }
  if (options.seed >= 0) config.options().assign(fmt::format("train.seed={}", options.seed));
  if (!options.dtype.empty()) config.options().assign("model.dtype=" + options.dtype);
  config.resolve();
  config.model.path = pinned_model(config.model.path);
  for (std::vector<std::string>* sources : {&config.data.train, &config.pretrain.source,
                                            &config.pretrain.held_out, &config.eval.benches}) {
    const bool are_names = sources == &config.eval.benches;  // a word is a file in eval.dir
    for (std::string& source : *sources)
      if (!are_names || source.find('/') != std::string::npos) source = pinned_source(source);
  }
  check_base(config.model);
}

RunInfo run_info(at::Device device, at::ScalarType dtype, const std::string& method) {
  return {.version = kBuildInfo.version,
          .revision = kBuildInfo.revision,
          .command_line = command_line(),
          .device = device.str(),
          .dtype = dtype_name(dtype),
          .method = method};
}

void warn_of_skipped(Recorder& recorder, const NewestCheckpoint& newest) {
  for (const SkippedCheckpoint& skipped : newest.skipped)
    recorder.warn(fmt::format("skipped {}: {}", skipped.path.string(), skipped.reason));
}

void warn_of_warm_up(const RunConfig& config, const std::function<void(const std::string&)>& warn) {
  const std::int64_t steps = config.optim.warmup_steps;
  if (steps == 0 || steps < config.train.steps) return;
  warn(
      fmt::format("optim.warmup_steps = {} is not less than train.steps = {}: the learning rate "
                  "rises to the end and optim.schedule never begins",
                  steps, config.train.steps));
}

std::optional<FoundCheckpoint> find_checkpoint_to_resume(Recorder& recorder,
                                                         const RunConfig& config,
                                                         const RunOptions& options) {
  const NewestCheckpoint newest = find_newest_whole(recorder.directory() / kCheckpointsFolder);
  warn_of_skipped(recorder, newest);
  recorder.info(newest.found ? fmt::format("going on from {}", newest.found->path.string())
                             : "no complete checkpoint to resume from; starting at step 0");
  if (newest.found) compare_with_before(recorder, config, options.allow);
  return newest.found;
}

std::optional<FoundCheckpoint> found_by_first(
    Communicator& ranks, const std::function<std::optional<FoundCheckpoint>()>& find) {
  std::optional<FoundCheckpoint> own;
  const std::string text = gather_agreed(ranks, [&] {
    if (ranks.rank() == 0) own = find();
    return own ? Json({{"path", own->path.string()}, {"step", own->step}}).dump() : std::string();
  })[0];
  if (ranks.rank() == 0 || text.empty()) return own;
  const Json first = parse_json(text, "rank 0");
  return FoundCheckpoint{first.at("path").get<std::string>(), first.at("step").get<std::int64_t>()};
}

int in_run_directory(const RunConfig& config, bool resume, Console& console, Communicator& ranks,
                     const RunWork& work) {
  std::optional<RunLock> lock;
  std::optional<Recorder> recorder;
  agree(ranks, [&] {
    if (ranks.rank() > 0) {
      recorder.emplace(config.record, console, ranks.rank());
      return;
    }
    check_loggers(config.record);
    lock.emplace(config.record.dir);
    if (!resume && holds_a_run(config.record.dir)) {
      throw InputError("the run directory already holds a run",
                       {.where = config.record.dir,
                        .remedy = "continue with --resume, or choose another record.dir"});
    }
    recorder.emplace(config.record, console);
  });
  std::int64_t last_step = 0;
  int status = 1;
  try {
    with_tensor_errors([&] { status = work(*recorder, last_step); });
  } catch (const Error& error) {
    recorder->finish("failed: " + error.message(), last_step);
    throw;
  }
  return status;
}

}  // namespace antisd::inline cli
