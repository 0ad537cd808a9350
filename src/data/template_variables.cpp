#include "data/template_variables.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/nearest.h"

namespace antisd::inline data {

Json template_variables(const Tokenizer& tokenizer, const ScalarMap& chat_options) {
  Json variables = Json::object();
  for (const auto& [name, token] : tokenizer.special_tokens())
    variables[name] = token;
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  for (const auto& [name, value] : chat_options) {
    Json& variable = variables[name];  // clang 14 cannot capture structured bindings
    std::visit([&](const auto& scalar) { variable = scalar; }, value);
  }
  variables["add_generation_prompt"] = true;
  return variables;
}

void check_chat_options(const ChatTemplate& chat, const ScalarMap& chat_options) {
  const std::vector<std::string> read = chat.names();
  for (const auto& [name, _] : chat_options) {
    if (std::binary_search(read.begin(), read.end(), name)) continue;
    const std::string nearest = nearest_name(name, read);
    throw InputError(fmt::format("the chat template never reads '{}'", name),
                     {.where = "data.chat_options",
                      .remedy = nearest.empty() ? "remove it: this template has no such variable"
                                                : fmt::format("did you mean '{}'?", nearest)});
  }
}

}  // namespace antisd::inline data
