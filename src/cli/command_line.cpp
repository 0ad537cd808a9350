#include <iostream>
#include <new>
#include <system_error>

#include <fmt/format.h>

#include "cli/command.h"
#include "core/check.h"
#include "core/error.h"
#include "core/nearest.h"

#ifdef ANTISD_TORCH
#include "ops/tensor_errors.h"
#endif

namespace antisd::inline cli {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = {
      {"tokenize", "text -> token ids, as Hugging Face's tokenizers give them", add_tokenize},
      {"detokenize", "token ids -> text", add_detokenize},
      {"render", "chat messages -> the prompt that a model's template gives", add_render},
#ifdef ANTISD_TORCH
      {"generate", "sample responses to prompts, or stream one to the terminal", add_generate},
      {"score", "log-probability and entropy of every token of given responses", add_score},
      {"train", "reinforcement learning: grpo, sd, opd, antisd, sdpo and the ablations", add_train},
      {"plan", "memory and hours of a training run on GPUs that need not be here", add_plan},
      {"eval", "benchmarks: avg@n and pass@k with 95 % intervals", add_eval},
      {"pretrain", "train on documents: a built-in task, text, or chats (supervised fine-tuning)",
       add_pretrain},
      {"demo", "GRPO, SD and AntiSD on the shipped model, compared; minutes on two cores",
       add_demo},
      {"sweep", "a grid of training runs in parallel, then their comparison", add_sweep},
      {"inspect", "the effect of the teacher's context on each token of a response: s, t, u, phi",
       add_inspect},
      {"merge", "a model and its LoRA adapter -> one Hugging Face directory", add_merge},
#endif
      {"grade", "responses -> verdicts: math, code in a sandbox, countdown", add_grade},
      {"data", "show, check and convert data sets", add_data},
      {"fetch", "a model or data set of the Hugging Face hub -> the local cache", add_fetch},
      {"report", "one HTML file that compares runs: curves, gate, evaluations, samples",
       add_report},
      {"dashboard", "the same page live, for all runs below a folder", add_dashboard},
      {"config", "print the configuration: defaults, or a file with its overrides resolved",
       add_config},
      {"doctor", "what this machine can do, and the remedy for what is missing", add_doctor},
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

int run_guarded(const std::function<int()>& run) {
#ifdef ANTISD_TORCH
  int status = 1;
  with_tensor_errors([&] { status = run(); });
  return status;
#else
  return run();
#endif
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App app("antisd: reinforcement learning of reasoning models with Anti-Self-Distillation",
               "antisd");
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  if (argc > 1 && argv[1][0] != '-') check_command_name(argv[1]);
  std::vector<std::pair<CLI::App*, std::function<int()>>> runs;
  for (const Command& command : all_commands()) {
    CLI::App* subcommand = app.add_subcommand(command.name, command.help);
    runs.emplace_back(subcommand, command.add(*subcommand));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError& error) {
    std::string command = "antisd";
    for (const CLI::App* parsed : app.get_subcommands())
      command += " " + parsed->get_name();
    throw InputError(error.what(), {.remedy = fmt::format("see `{} --help`", command)});
  }
  for (const auto& [subcommand, run] : runs) {
    if (subcommand->parsed()) return run_guarded(run);
  }
  return 2;
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
