// The program that calls a user's reward function (python_program.py), embedded at build time.
#pragma once

#include <string_view>

namespace antisd::inline reward {

std::string_view python_program();

}  // namespace antisd::inline reward
