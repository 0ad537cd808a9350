// `config`: the configuration as TOML.
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/usage.h"
#include "config/run_config.h"
#include "core/error.h"

namespace antisd::inline cli {
namespace {

struct ConfigOptions {
  std::vector<std::string> arguments;  // a file, then key=value
  bool defaults = false;
  bool docs = false;
};

}  // namespace

std::function<int()> add_config(CLI::App& app) {
  const auto options = std::make_shared<ConfigOptions>();
  app.add_option("FILE key=value", options->arguments, "a TOML file and overrides, both optional");
  app.add_flag("--defaults", options->defaults, "every key with its default and help");
  app.add_flag("--docs", options->docs, "every key as a page of Markdown (docs/options.md)");
  add_keys_footer(app, "");
  return [options] {
    RunConfig config;
    if (options->docs) {
      std::cout << "# Options\n\nEvery key of a configuration file, as `antisd config --docs` "
                   "prints it. On a command line\na key is given as `section.key=value`.\n"
                << config.options().to_markdown();
      return 0;
    }
    for (const std::string& argument : options->arguments) {
      if (argument.find('=') != std::string::npos) {
        config.options().assign(argument);
      } else if (&argument == &options->arguments.front()) {
        config.options().load_toml(argument);
      } else {
        throw InputError(
            "not of the form key=value",
            {.where = "'" + argument + "'", .remedy = "only one file can be given, first"});
      }
    }
    config.resolve();
    std::cout << config.options().to_toml(options->defaults);
    return 0;
  };
}

}  // namespace antisd::inline cli
