// The names that data sets use for our columns `problem` and `answer`, and the two usual forms of a
// solution that holds the answer: GSM8K's "... #### 42" and MATH's "... \boxed{42}".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/json.h"

namespace antisd::inline data {

// The row's column that stands for `column`; nothing if it has none. InputError, with the choices,
// where it has several that could be meant: columns of equal values count as one.
std::optional<std::string> find_alias(const Json& row, const std::string& column,
                                      const std::string& where);

// The answer behind "####" at the start of the last line, without the commas of a number.
std::optional<std::string> answer_after_marks(std::string_view text);

// The content of the last \boxed{...} whose braces match.
std::optional<std::string> boxed_answer(std::string_view text);

}  // namespace antisd::inline data
