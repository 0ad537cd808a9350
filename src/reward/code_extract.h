// The program in a model's response.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace antisd {

// The last fenced block marked python (py, python3, py3), or else the last block without a
// language. A block that the response leaves open at its end counts. Text inside <think> never
// counts.
std::optional<std::string> extract_python(std::string_view response);

// The response without its thinking: <think>...</think> pairs, what stands before a lone </think>
// (the prompt opened it) and what stands behind a lone <think>.
std::string without_thinking(std::string_view response);

}  // namespace antisd
