#include "io/process/python_command.h"

#include <cstdlib>

#include <fmt/format.h>

namespace antisd::inline io {

std::string python_name(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  const char* named = std::getenv("ANTISD_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text)
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::string python_command(const std::string& python, std::string_view program) {
  return fmt::format("exec {} -c {}", shell_quoted(python), shell_quoted(program));
}

bool is_not_runnable(int exit_status) {
  return exit_status == 126 || exit_status == 127;
}

}  // namespace antisd::inline io
