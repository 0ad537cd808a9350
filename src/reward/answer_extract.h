// Finds the answer in a response: the last \boxed{}, then "the answer is ...", then, on request,
// the last number. Every scan is linear in the text. Nothing inside <think> ... </think> counts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace antisd::math {

// The text outside <think> ... </think>. A closing tag without an opening one ends thoughts that
// began with the text; an opening tag without a closing one means that the response never came to
// its answer: nothing is visible.
std::string visible_text(std::string_view response);

// The content of the last \boxed or \fbox with balanced braces. Boxes joined by commas or "and"
// count together: "\boxed{2} and \boxed{3}" -> "2, 3".
std::optional<std::string> last_box(std::string_view text);

// What the last <answer>...</answer> holds, or what follows the last "####", "answer is" or
// "answer:", to the end of the line or sentence.
std::optional<std::string> stated_answer(std::string_view text);

// The last number, fraction or percentage.
std::optional<std::string> last_number(std::string_view text);

// The answer in a text that is an answer already: in a box, in $...$, bare, or with a few words
// around.
std::string bare_answer(std::string_view text);

}  // namespace antisd::math
