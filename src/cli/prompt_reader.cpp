#include "cli/prompt_reader.h"

#include <filesystem>

#include "cli/rows.h"
#include "core/error.h"
#include "text/chat_variables.h"
#include "text/tokenizer/tokenizer_config.h"

namespace antisd::inline cli {

const Tokenizer& PromptReader::tokenizer() {
  if (!tokenizer_) tokenizer_ = Tokenizer::load(model_);
  return *tokenizer_;
}

bool PromptReader::has_tokenizer() const {
  const std::filesystem::path folder(model_);
  return std::filesystem::exists(folder / "tokenizer.json") ||
         std::filesystem::exists(folder / "vocab.json");
}

std::vector<std::int32_t> PromptReader::read(const Json& row) {
  if (row.contains("prompt_ids")) return ids_of(row, "prompt_ids");
  if (row.contains("messages")) {
    if (!template_) {
      template_ = ChatTemplate::load(model_);
      special_tokens_ = TokenizerConfig::load(model_).special_tokens;
    }
    return tokenizer().encode(template_->render(chat_variables(row, special_tokens_)));
  }
  if (!row.contains("prompt")) {
    throw InputError("the row has no prompt",
                     {.remedy = "give 'prompt', 'messages' or 'prompt_ids'"});
  }
  return tokenizer().encode(required_string(row, "prompt"), /*add_special_tokens=*/true);
}

}  // namespace antisd::inline cli
