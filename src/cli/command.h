// A command of the program: its name, one line of help, and a function that adds its flags and
// returns what to run once they are parsed.
#pragma once

#include <functional>
#include <vector>

#include <CLI/CLI.hpp>

namespace antisd::inline cli {

// Called once, before parsing; the returned function runs the command and yields the exit status.
using AddCommand = std::function<int()> (*)(CLI::App& app);

struct Command {
  const char* name;
  const char* help;
  AddCommand add;
};

// The command is above the tensor line: its function is listed in cli/weights/tensor_half.cpp.
inline constexpr AddCommand kInTensorHalf = nullptr;

// All commands, in the order of --help.
const std::vector<Command>& all_commands();

std::function<int()> add_tokenize(CLI::App& app);
std::function<int()> add_detokenize(CLI::App& app);
std::function<int()> add_render(CLI::App& app);
std::function<int()> add_grade(CLI::App& app);
std::function<int()> add_data(CLI::App& app);
std::function<int()> add_fetch(CLI::App& app);
std::function<int()> add_report(CLI::App& app);
std::function<int()> add_dashboard(CLI::App& app);
std::function<int()> add_config(CLI::App& app);
std::function<int()> add_doctor(CLI::App& app);
std::function<int()> add_help(CLI::App& app);
std::function<int()> add_version(CLI::App& app);

// In the tensor half.
std::function<int()> add_generate(CLI::App& app);
std::function<int()> add_score(CLI::App& app);
std::function<int()> add_train(CLI::App& app);
std::function<int()> add_pretrain(CLI::App& app);
std::function<int()> add_sweep(CLI::App& app);
std::function<int()> add_eval(CLI::App& app);
std::function<int()> add_demo(CLI::App& app);
std::function<int()> add_plan(CLI::App& app);
std::function<int()> add_inspect(CLI::App& app);
std::function<int()> add_merge(CLI::App& app);
std::function<int()> add_serve(CLI::App& app);
std::function<int()> add_quickstart(CLI::App& app);

// Parses, runs, and turns every error into one line on standard error. Returns the exit status: 0
// done, 1 failed while running, 2 bad usage, configuration or input, 130 stopped by a signal.
int run_command_line(int argc, const char* const* argv);

}  // namespace antisd::inline cli
