// libFuzzer: a configuration. Lines up to the first "--" are TOML, those after it are key=value. It
// is resolved or rejected with an InputError, and a printed configuration resolves to itself.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "config/run_config.h"
#include "core/error.h"

namespace {

std::string printed_again(const std::string& toml) {
  antisd::RunConfig config;
  config.options().load_toml_text(toml, "printed");
  config.resolve();
  return config.options().to_toml(false);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // Files of this machine are not part of the input.
  if (text.find("extends") != std::string::npos) return 0;
  const std::size_t mark = text.find("--\n");
  std::string toml;
  try {
    antisd::RunConfig config;
    config.options().load_toml_text(text.substr(0, mark), "fuzz");
    std::istringstream assignments(mark == std::string::npos ? "" : text.substr(mark + 3));
    for (std::string line; std::getline(assignments, line);)
      config.options().assign(line);
    config.resolve();
    toml = config.options().to_toml(false);
  } catch (const antisd::InputError&) {
    return 0;
  }
  if (printed_again(toml) != toml) std::abort();
  return 0;
}
