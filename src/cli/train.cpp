// `train`: reinforcement learning.
#ifdef ANTISD_TORCH

#include <fstream>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/dry_run.h"
#include "cli/training_run.h"
#include "core/error.h"
#include "trainer/stop_signals.h"

namespace antisd {
namespace {

struct TrainCommandOptions {
  std::vector<std::string> arguments;  // a file, then key=value
  TrainingOptions training;
  std::string dtype;
  std::int64_t seed = -1;
  bool quiet = false;
  bool dry_run = false;
};

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

void read_config(const TrainCommandOptions& options, RunConfig& config) {
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

}  // namespace

std::function<int()> add_train(CLI::App& app) {
  const auto options = std::make_shared<TrainCommandOptions>();
  app.add_option("CONFIG key=value", options->arguments, "a TOML file, then overrides")->required();
  app.add_flag("--resume", options->training.resume,
               "go on from the newest whole checkpoint of record.dir, also of a finished run when "
               "train.steps is larger now");
  app.add_option("--device", options->training.device,
                 "cpu, cuda, cuda:N, or auto: a GPU where there is one")
      ->capture_default_str();
  app.add_option("--dtype", options->dtype, "model.dtype: auto, fp32, bf16 or fp16")
      ->check(CLI::IsMember({"auto", "fp32", "bf16", "fp16"}));
  app.add_option("--threads", options->training.threads, "threads of the tensor library")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--seed", options->seed, "train.seed")->check(CLI::NonNegativeNumber);
  app.add_flag("--quiet", options->quiet, "warnings alone");
  app.add_flag("--dry-run", options->dry_run,
               "read data, tokenizer and templates, show prompts, shapes and memory, and say what "
               "would fail; the model's weights are not needed, nothing is written");
  app.footer(
      "SIGINT, SIGTERM or SIGUSR1: the step is finished and saved, the exit status is 130; a "
      "second one leaves at once.\n"
      "Keys:\n" +
      RunConfig().options().to_help());
  return [options] {
    RunConfig config;
    read_config(*options, config);
    options->training.command_line = command_line();
    Console console({.quiet = options->quiet});
    if (options->dry_run) {
      dry_run(config, options->training, console, std::cout);
      return 0;
    }
    const StopSignals signals;
    return run_training(config, options->training, console, [] { return StopSignals::received(); });
  };
}

}  // namespace antisd

#endif
