#include "cli/run_options.h"

#ifdef ANTISD_TORCH

#include <fstream>

#include <fmt/format.h>

#include "cli/build_info.h"
#include "core/error.h"
#include "model/causal_lm.h"
#include "ops/tensor_errors.h"
#include "trainer/run_lock.h"

namespace antisd {
namespace {

namespace fs = std::filesystem;

// As the shell gave it to us; /proc has it byte for byte.
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

bool holds_a_run(const fs::path& directory) {
  return fs::exists(directory / "metrics.jsonl") || fs::exists(directory / "checkpoints");
}

}  // namespace

void add_run_options(CLI::App& app, RunOptions& options) {
  app.add_option("CONFIG key=value", options.arguments, "a TOML file, then overrides")->required();
  app.add_flag("--resume", options.resume,
               "go on from the newest whole checkpoint of record.dir, also of a finished run when "
               "train.steps is larger now");
  app.add_option("--device", options.device, "cpu, cuda, cuda:N, or auto: a GPU where there is one")
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "model.dtype: auto, fp32, bf16 or fp16")
      ->check(CLI::IsMember({"auto", "fp32", "bf16", "fp16"}));
  app.add_option("--threads", options.threads,
                 "threads of the tensor library; 0: as many as the machine has to spare, looked at "
                 "anew each step. They change no result")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_option("--seed", options.seed, "train.seed")->check(CLI::NonNegativeNumber);
  app.add_flag("--quiet", options.quiet, "warnings alone");
  app.footer(
      "SIGINT, SIGTERM or SIGUSR1: the step is finished and saved, the exit status is 130; a "
      "second one leaves at once.\n"
      "Keys:\n" +
      RunConfig().options().to_help());
}

void read_config(const RunOptions& options, RunConfig& config) {
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

std::optional<FoundCheckpoint> find_checkpoint_to_resume(Recorder& recorder) {
  const NewestCheckpoint newest = find_newest_whole(recorder.directory() / "checkpoints");
  warn_of_skipped(recorder, newest);
  recorder.info(newest.found ? fmt::format("going on from {}", newest.found->path.string())
                             : "no whole checkpoint to go on from; starting at step 0");
  return newest.found;
}

int in_run_directory(const RunConfig& config, bool resume, Console& console, const RunWork& work) {
  const RunLock lock(config.record.dir);
  if (!resume && holds_a_run(config.record.dir)) {
    throw InputError("the run directory holds a run already",
                     {.where = config.record.dir,
                      .remedy = "go on with --resume, or choose another record.dir"});
  }
  Recorder recorder(config.record, console);
  std::int64_t last_step = 0;
  int status = 1;
  try {
    with_tensor_errors([&] { status = work(recorder, last_step); });
  } catch (const Error& error) {
    recorder.finish("failed: " + error.message(), last_step);
    throw;
  }
  return status;
}

}  // namespace antisd

#endif
