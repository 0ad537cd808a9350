// The names that a code row asks a program to define, found from the row itself. Tests take these
// names from the program and all other names from the tests (docs/sandbox.md).
//
//   asked_names("def sum(a, b):\n  return a + b\n", "assert sum(1, 2) == 3");
//   // {"sum": "function"}
#pragma once

#include <string>
#include <string_view>

#include "io/json.h"

namespace antisd::inline data {

// Names that a solution defines at top level and the tests use: "function" or "class".
Json asked_names(std::string_view solution, std::string_view tests);

// The part of a HumanEval prompt before the requested function, if that part defines a function
// that the tests call (encode_shift of HumanEval/50); otherwise empty. Such a helper belongs to the
// tests: a program that defined its own could pass with an identity function.
std::string helpers_of_prompt(std::string_view prompt, std::string_view entry_point,
                              std::string_view tests);

}  // namespace antisd::inline data
