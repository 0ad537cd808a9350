// The part of a response that counts: the text outside its reasoning.
#pragma once

#include <string>
#include <string_view>

namespace antisd::inline reward {

// The text outside <think> ... </think>, with a newline in place of each. A closing tag without an
// opening one ends reasoning that the prompt opened: the text before it does not count. An opening
// tag without a closing one means that the response never left its reasoning: the text after it
// does not count.
std::string visible_text(std::string_view response);

}  // namespace antisd::inline reward
