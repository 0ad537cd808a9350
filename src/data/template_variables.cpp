#include "data/template_variables.h"

namespace antisd {

Json template_variables(const Tokenizer& tokenizer, const ScalarMap& chat_options) {
  Json variables = Json::object();
  for (const auto& [name, token] : tokenizer.special_tokens())
    variables[name] = token;
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  for (const auto& [name, value] : chat_options)
    std::visit([&](const auto& scalar) { variables[name] = scalar; }, value);
  variables["add_generation_prompt"] = true;
  return variables;
}

}  // namespace antisd
