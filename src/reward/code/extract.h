// The program in a model's response.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace antisd::inline reward {

// The last fenced block marked python (py, python3, py3), otherwise the last block without a
// language. A block that is still open at the end of the response counts. Only visible text counts
// (visible_text.h).
std::optional<std::string> extract_python(std::string_view response);

}  // namespace antisd::inline reward
