// Shortens a solution to a number of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/tokenizer/tokenizer.h"

namespace antisd::inline context {

inline constexpr std::string_view kCutMarker = "\n[...]\n";

// The text itself if it has at most `budget` tokens. Otherwise the first quarter of the budget, a
// marker (not counted), and the last three quarters: the answer is at the end.
std::string shorten_solution(const Tokenizer& tokenizer, const std::string& text,
                             std::int64_t budget);

}  // namespace antisd::inline context
