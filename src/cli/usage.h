// What all commands have in common on the command line: --quiet, --help-all, and messages that name
// what was probably meant.
#pragma once

#include <CLI/CLI.hpp>

#include "core/error.h"

namespace antisd::inline cli {

// Adds --quiet and --help-all to a command and its kinds, where they do not have them yet.
void add_common_flags(CLI::App& command);
// Whether --quiet was given to the command or the kind of it that was parsed.
bool is_quiet(const CLI::App& app);

// InputError for a word that is not a kind of its command (`grade maths`), with the nearest one and
// all that there are.
void check_kinds(const CLI::App& app, int argc, const char* const* argv);

// The error of the parser in our words: an unknown flag names the nearest known one.
InputError usage_error(const CLI::App& app, const CLI::ParseError& error, int argc,
                       const char* const* argv);

// Sets the text below a command's flags: `text`, then the configuration's keys: the common ones of
// this command for --help, all of them for --help-all.
void add_keys_footer(CLI::App& command, const std::string& text);

}  // namespace antisd::inline cli
