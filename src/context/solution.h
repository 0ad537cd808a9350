// A solution that fits its budget of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/tokenizer/tokenizer.h"

namespace antisd::inline context {

inline constexpr std::string_view kCutMarker = "\n[...]\n";

// The text where it has at most `budget` tokens; else its first quarter of the budget, the marker
// (on top of the budget) and its last three quarters: the end is where the answer is.
std::string shorten_solution(const Tokenizer& tokenizer, const std::string& text,
                             std::int64_t budget);

}  // namespace antisd::inline context
