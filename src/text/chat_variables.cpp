#include "text/chat_variables.h"

#include <fmt/format.h>

#include "core/error.h"
#include "text/chat_template.h"

namespace antisd::inline text {

Json chat_variables(const Json& row, const Json& special_tokens) {
  const auto messages = row.find("messages");
  if (messages == row.end() || !messages->is_array()) {
    throw InputError(messages == row.end() ? "the row has no 'messages'"
                                           : fmt::format("'messages' is {}", messages->type_name()),
                     {.remedy = "give a list of {\"role\", \"content\"}"});
  }
  Json variables = special_tokens;
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = true;
  for (const auto& [key, value] : row.items()) {
    if (key != "id") variables[key] = value;
  }
  variables["messages"] = with_reasoning_names(*messages);
  return variables;
}

}  // namespace antisd::inline text
