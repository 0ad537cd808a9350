// What of a response counts: the text outside its reasoning.
#pragma once

#include <string>
#include <string_view>

namespace antisd::inline reward {

// The text outside <think> ... </think>, with a line end in place of each. A closing tag without an
// opening one ends reasoning that the prompt opened: nothing before it counts. An opening tag
// without a closing one means that the response never left its reasoning: nothing behind it counts.
std::string visible_text(std::string_view response);

}  // namespace antisd::inline reward
