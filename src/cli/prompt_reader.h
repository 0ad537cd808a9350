// Token ids from a row with a prompt in any of its forms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline cli {

class PromptReader {
 public:
  // Loads nothing yet: ids need no tokenizer, and text needs no template.
  explicit PromptReader(std::string model) : model_(std::move(model)) {}

  // {"prompt_ids"}, {"messages", ...} through the chat template, or {"prompt"} as it is, with the
  // special tokens that the tokenizer adds. InputError.
  std::vector<std::int32_t> read(const Json& row);

  const Tokenizer& tokenizer();
  bool has_tokenizer() const;  // whether the model's directory has one

 private:
  std::string model_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
  Json special_tokens_;
};

}  // namespace antisd::inline cli
