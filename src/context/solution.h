// The text of a solution: from a column of the data set, and shortened to a number of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/problem.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline context {

inline constexpr std::string_view kCutMarker = "\n[...]\n";

// The text itself if it has at most `budget` tokens. Otherwise the first quarter of the budget, a
// marker (not counted), and the last three quarters: the answer is at the end.
std::string shorten_solution(const Tokenizer& tokenizer, const std::string& text,
                             std::int64_t budget);

// The text of context.column in a problem's row; empty if it is null. InputError if the row has no
// such column or something other than text in it.
std::string column_text(const Problem& problem, const std::string& column);

}  // namespace antisd::inline context
