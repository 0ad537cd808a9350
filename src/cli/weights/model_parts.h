// The parts of a model directory other than weights: tokenizer and template as a renderer, stop
// ids.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "context/prompt_renderer.h"

namespace antisd::inline cli {

using Warn = std::function<void(const std::string&)>;

// Warns if there is no chat template: prompts are then plain text.
PromptRenderer make_renderer(const std::filesystem::path& model, const DataConfig& config,
                             const Warn& warn);

// Warns if there are none.
std::vector<TokenId> find_stop_ids(const std::filesystem::path& model, const Tokenizer& tokenizer,
                                   const Warn& warn);

}  // namespace antisd::inline cli
