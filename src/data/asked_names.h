// What a code row asks a program to define, from the row alone. Tests take these names from the
// program and every other name from themselves (docs/sandbox.md).
//
//   asked_names("def sum(a, b):\n  return a + b\n", "assert sum(1, 2) == 3");
//   // {"sum": "function"}
#pragma once

#include <string>
#include <string_view>

#include "io/json.h"

namespace antisd::inline data {

// The names that a solution defines at its top level and the tests use: "function" or "class".
Json asked_names(std::string_view solution, std::string_view tests);

// The part of a HumanEval prompt before the function it asks for, where that part defines a
// function which the tests call (encode_shift of HumanEval/50); otherwise empty. Such a helper is
// the tests' own: a program that brings another one would pass with an identity.
std::string helpers_of_prompt(std::string_view prompt, std::string_view entry_point,
                              std::string_view tests);

}  // namespace antisd::inline data
