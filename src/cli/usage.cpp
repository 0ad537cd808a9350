#include "cli/usage.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/run_config.h"
#include "core/nearest.h"

namespace antisd::inline cli {
namespace {

constexpr const char* kQuiet = "--quiet";

std::string did_you_mean(const std::string& nearest) {
  return nearest.empty() ? "" : fmt::format("did you mean '{}'? ", nearest);
}

std::vector<std::string> kinds_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* kind : command.get_subcommands({}))
    names.push_back(kind->get_name());
  return names;
}

// The innermost command or kind that was parsed, and its words: "antisd grade math".
const CLI::App& parsed_command(const CLI::App& app, std::string& words) {
  words = app.get_name();
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    words += " " + command->get_name();
  }
  return *command;
}

std::string nearest_flag(const CLI::App& command, const std::string& word) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      flags.push_back("--" + name);
  return nearest_name(word, flags);
}

}  // namespace

void add_common_flags(CLI::App& command) {
  if (command.get_option_no_throw(kQuiet) == nullptr)
    command.add_flag(kQuiet)->description("nothing but errors on standard error");
  command.set_help_all_flag("--help-all", "the long help: every option and every key");
  for (CLI::App* kind : command.get_subcommands({}))
    add_common_flags(*kind);
}

bool is_quiet(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    const CLI::Option* quiet = command->get_option_no_throw(kQuiet);
    if ((quiet != nullptr && quiet->count() > 0) || is_quiet(*command)) return true;
  }
  return false;
}

void check_kinds(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2) return;
  std::vector<std::string> kinds;
  for (const CLI::App* command : app.get_subcommands({}))
    if (command->get_name() == argv[1]) kinds = kinds_of(*command);
  if (kinds.empty()) return;
  int at = 2;
  while (at < argc && argv[at] == std::string(kQuiet))
    ++at;
  const std::string word = at < argc ? argv[at] : "";
  if (word.starts_with("-") || std::ranges::count(kinds, word) > 0) return;
  throw InputError(word.empty() ? fmt::format("`antisd {}` needs to know what kind", argv[1])
                                : fmt::format("`antisd {}` does not know '{}'", argv[1], word),
                   {.remedy = fmt::format("{}it knows {}", did_you_mean(nearest_name(word, kinds)),
                                          fmt::join(kinds, ", "))});
}

InputError usage_error(const CLI::App& app, const CLI::ParseError& error, int argc,
                       const char* const* argv) {
  std::string words;
  const CLI::App& command = parsed_command(app, words);
  std::string nearest;
  for (int i = 1; i < argc && nearest.empty(); ++i) {
    std::string word = argv[i];
    word.resize(std::min(word.find('='), word.size()));
    if (word.size() > 2 && word.starts_with("--") && !command.get_option_no_throw(word))
      nearest = nearest_flag(command, word);
  }
  return InputError(error.what(),
                    {.remedy = did_you_mean(nearest) + fmt::format("see `{} --help`", words)});
}

void add_keys_footer(CLI::App& command, const std::string& text) {
  command.footer([&command, text] {
    const RunConfig config;
    if (command.get_help_all_ptr()->count() > 0)
      return fmt::format("{}Keys:\n{}", text, config.options().to_help());
    return fmt::format(
        "{}The most used keys (`antisd {} --help-all` lists all, docs/options.md too):\n{}", text,
        command.get_name(), config.options().to_help(command.get_name()));
  });
}

}  // namespace antisd::inline cli
