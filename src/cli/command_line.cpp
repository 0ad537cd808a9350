#include <algorithm>
#include <iostream>
#include <new>
#include <system_error>

#include <fmt/format.h>

#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/tensor_half.h"
#include "cli/usage.h"
#include "core/check.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/note.h"

namespace antisd::inline cli {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = {
      {"tokenize", "text -> token ids, as Hugging Face's tokenizers give them", add_tokenize},
      {"detokenize", "token ids -> text", add_detokenize},
      {"render", "chat messages -> the prompt that a model's template gives", add_render},
      {"generate", "sample responses to prompts, or stream one to the terminal", kInTensorHalf},
      {"serve", "answer over HTTP as OpenAI's interface does: chat, completions, streaming",
       kInTensorHalf},
      {"score", "log-probability and entropy of every token of given responses", kInTensorHalf},
      {"train", "reinforcement learning: grpo, sd, opd, antisd, sdpo and the ablations",
       kInTensorHalf},
      {"plan", "memory and hours of a training run on GPUs that need not be here", kInTensorHalf},
      {"eval", "benchmarks: avg@n and pass@k with 95 % intervals", kInTensorHalf},
      {"pretrain", "train on documents: a built-in task, text, or chats (supervised fine-tuning)",
       kInTensorHalf},
      {"demo", "GRPO, SD and AntiSD on the shipped model, compared; minutes on two cores",
       kInTensorHalf},
      {"quickstart", "a first training run with settings chosen for this machine", kInTensorHalf},
      {"sweep", "a grid of training runs in parallel, then their comparison", kInTensorHalf},
      {"inspect", "the effect of the teacher's context on each token of a response: s, t, u, phi",
       kInTensorHalf},
      {"merge", "a model and its LoRA adapter -> one Hugging Face directory", kInTensorHalf},
      {"grade", "responses -> verdicts: math, code in a sandbox, countdown", add_grade},
      {"data", "show, check and convert data sets", add_data},
      {"fetch", "a model or data set of the Hugging Face hub -> the local cache", add_fetch},
      {"report", "one HTML file that compares runs: curves, gate, evaluations, samples",
       add_report},
      {"dashboard", "the same page live, for all runs below a folder", add_dashboard},
      {"config", "print the configuration: defaults, or a file with its overrides resolved",
       add_config},
      {"doctor", "what this machine can do, and the remedy for what is missing", add_doctor},
      {"help", "the help of a command, or this list", add_help},
      {"version", "version, revision and how this binary was built", add_version},
  };
  return commands;
}

namespace {

void check_command_name(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : all_commands()) {
    if (name == command.name) return;
    names.emplace_back(command.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw InputError(fmt::format("unknown command '{}'", name),
                   {.remedy = nearest.empty() ? "`antisd --help` lists the commands"
                                              : fmt::format("did you mean '{}'?", nearest)});
}

// Adds the flags of one command; loading the tensor half for the others would take longer than most
// commands.
std::function<int()> add_flags(const Command& command, CLI::App& app) {
  return command.add != kInTensorHalf ? command.add(app)
                                      : load_tensor_half().add(command.name, app);
}

// `help COMMAND` is `COMMAND --help`, and `help` is `--help`.
std::vector<std::string> arguments_of(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  return arguments;
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App app("antisd: reinforcement learning of reasoning models with Anti-Self-Distillation",
               "antisd");
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  app.set_version_flag("-v,--version", fmt::format("antisd {}", kBuildInfo.version));
  std::vector<std::string> arguments = arguments_of(argc, argv);
  const std::string chosen = arguments.empty() ? "" : arguments.front();
  if (!chosen.starts_with('-') && !chosen.empty()) check_command_name(chosen);
  std::function<int()> run;
  for (const Command& command : all_commands()) {
    CLI::App* const subcommand = app.add_subcommand(command.name, command.help);
    if (chosen == command.name) run = add_flags(command, *subcommand);
    add_common_flags(*subcommand);
  }
  check_kinds(app, argc, argv);
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << "\n";
    return 0;
  } catch (const CLI::CallForAllHelp&) {
    std::cout << app.help("", CLI::AppFormatMode::All);
    return 0;
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error, argc, argv);
  }
  if (!run) throw InputError("the command has to come first", {.remedy = "see `antisd --help`"});
  if (is_quiet(app)) silence_notes();
  return run();
}

// Allocates no memory: it also reports that memory has run out.
int report(std::string_view message, int exit_status) {
  std::cout.flush();  // keeps earlier output before the message on a terminal
  std::cerr << "antisd: " << message << std::endl;
  return exit_status;
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  try {
    const int status = parse_and_run(argc, argv);
    if (!std::cout.flush()) {
      return report("standard output: cannot write; is the disk full?", 1);
    }
    return status;
  } catch (const Error& error) {
    return report(error.message(), error.exit_status());
  } catch (const std::bad_alloc&) {
    return report("out of memory; give it smaller input or more memory", 1);
  } catch (const CheckFailure& failure) {
    return report(fmt::format("internal error, please report it: {}", failure.what()), 1);
  } catch (const std::system_error& error) {  // a thread or folder that cannot be created
    return report(fmt::format("the system refuses: {}", error.what()), 1);
  } catch (const std::exception& error) {
    return report(fmt::format("internal error, please report it: {}", error.what()), 1);
  }
}

}  // namespace antisd::inline cli
