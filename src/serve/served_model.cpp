#include "serve/served_model.h"

#include <algorithm>

#include "inference/stop_ids.h"
#include "serve/api_error.h"
#include "text/chat_files.h"
#include "text/chat_variables.h"
#include "text/tokenizer/tokenizer_config.h"

namespace antisd::inline serve {

namespace fs = std::filesystem;

ServedModel::ServedModel(const fs::path& files, std::string name)
    : name_(std::move(name)), stop_ids_(read_stop_ids(files)) {
  if (!fs::exists(files / "tokenizer.json") && !fs::exists(files / "vocab.json")) return;
  tokenizer_ = Tokenizer::load(files);
  if (const auto id = tokenizer_->special_token_id("eos_token")) stop_ids_.push_back(*id);
  if (!has_chat_template(files)) return;
  template_ = ChatTemplate::load(files);
  template_names_ = template_->names();
  special_tokens_ = TokenizerConfig::load(files).special_tokens;
}

bool ServedModel::template_reads(const std::string& variable) const {
  return std::binary_search(template_names_.begin(), template_names_.end(), variable);
}

std::vector<std::int32_t> ServedModel::encode(const std::string& text) const {
  if (!tokenizer_)
    throw ApiError(400, "the model has no tokenizer: give the prompt as token ids", "prompt");
  return tokenizer_->encode(text, /*add_special_tokens=*/true);
}

std::vector<std::int32_t> ServedModel::render(const Json& variables) const {
  if (!template_) {
    throw ApiError(400, "the model has no chat template: use /v1/completions with a prompt",
                   "messages");
  }
  return tokenizer_->encode(template_->render(chat_variables(variables, special_tokens_)));
}

}  // namespace antisd::inline serve
