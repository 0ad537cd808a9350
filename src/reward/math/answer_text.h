// Answers as text: keys by which two spellings of the same text are equal, and letters of choices.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace antisd::inline reward::math {

// The answer without spaces, layout and case; equal keys mean the same text.
std::string text_key(std::string_view answer);

// The letter of a multiple-choice answer: "A", "(A)", "A)", "\textbf{(A)}", "(A) 12", "A. 12".
// Without `strict`, anything may follow the letter.
std::optional<char> choice_letter(std::string_view answer, bool strict);

// The text after the letter in "(A) 12" and "\textbf{(A)}\ 12"; otherwise the answer itself.
std::string_view without_choice_letter(std::string_view answer);

// Whether the answer starts with yes, no, true or false, and which: "Yes, it converges" -> "yes".
std::optional<std::string> leading_verdict(std::string_view answer);

}  // namespace antisd::inline reward::math
