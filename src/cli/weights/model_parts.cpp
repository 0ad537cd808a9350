#include "cli/weights/model_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "inference/stop_ids.h"
#include "text/chat_files.h"

namespace antisd::inline cli {

namespace fs = std::filesystem;

PromptRenderer make_renderer(const fs::path& model, const DataConfig& config, const Warn& warn) {
  std::optional<ChatTemplate> chat;
  if (has_chat_template(model)) {
    chat = ChatTemplate::load(model);
  } else {
    warn(fmt::format("{} has no chat template: prompts are given as plain text{}", model.string(),
                     config.chat_options.empty() ? "" : ", and data.chat_options have no effect"));
  }
  return PromptRenderer(Tokenizer::load(model), std::move(chat), config);
}

std::vector<TokenId> find_stop_ids(const fs::path& model, const Tokenizer& tokenizer,
                                   const Warn& warn) {
  std::vector<TokenId> ids = read_stop_ids(model);
  const std::optional<TokenId> own = tokenizer.special_token_id("eos_token");
  if (own && std::find(ids.begin(), ids.end(), *own) == ids.end()) ids.push_back(*own);
  if (ids.empty())
    warn("the model names no end-of-sequence token: every response will be truncated");
  return ids;
}

}  // namespace antisd::inline cli
