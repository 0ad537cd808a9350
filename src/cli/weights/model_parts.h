// What a model directory holds beside weights: tokenizer and template as a renderer, stop ids.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "context/prompt_renderer.h"

namespace antisd::inline cli {

using Warn = std::function<void(const std::string&)>;

bool has_chat_template(const std::filesystem::path& model);

// Warns where there is no chat template: prompts are plain text then.
PromptRenderer make_renderer(const std::filesystem::path& model, const DataConfig& config,
                             const Warn& warn);

// Warns where there are none.
std::vector<TokenId> find_stop_ids(const std::filesystem::path& model, const Tokenizer& tokenizer,
                                   const Warn& warn);

}  // namespace antisd::inline cli
