// Finds the answer in a response: the last \boxed{}, then "the answer is ...", then, on request,
// the last number. Every scan is linear in the text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace antisd::inline reward::math {

// The content of the last \boxed or \fbox with balanced braces. Adjacent boxes, or boxes joined by
// a comma, "and" or "or", form one answer: "x = \boxed{2} and y = \boxed{3}" -> "2, 3".
std::optional<std::string> last_box(std::string_view text);

// The content of the last <answer>...</answer>, or the text after the last "####", "answer is" or
// "answer:", up to the end of the line or sentence.
std::optional<std::string> stated_answer(std::string_view text);

// The last number, fraction or percentage.
std::optional<std::string> last_number(std::string_view text);

// The answer in a text that is only an answer: in a box, in $...$, bare, or with a few words around
// it.
std::string bare_answer(std::string_view text);

// The response up to a chat marker such as <|im_start|>, which starts another turn.
std::string_view without_next_turn(std::string_view response);

// LaTeX that was escaped once too often, "\\frac{1}{2}", as it was meant. Row ends stay: a text
// with any single backslash is not changed.
std::string with_single_backslashes(std::string_view answer);

}  // namespace antisd::inline reward::math
