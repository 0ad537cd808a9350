// Commands for /bin/sh that run a Python program of ours, which is embedded as text.
//
//   auto [ours, theirs] = make_socket_pair(SOCK_STREAM);
//   SupervisedCommand question(python_command(python_name(), "print(1)"), std::move(theirs));
#pragma once

#include <string>
#include <string_view>

namespace antisd::inline io {

// `chosen`, or what ANTISD_PYTHON names, or python3.
std::string python_name(const std::string& chosen = {});

// One word of /bin/sh, whatever the text holds.
std::string shell_quoted(std::string_view text);

std::string python_command(const std::string& python, std::string_view program);

// Whether this exit status is a shell's for a program that it cannot run.
bool is_not_runnable(int exit_status);

}  // namespace antisd::inline io
