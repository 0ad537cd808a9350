// The initial directory of a new model: a Hugging Face directory without weights.
#pragma once

#include <filesystem>

#include "config/run_config.h"

namespace antisd::inline trainer {

// config.json and generation_config.json of a Qwen3 model, with the tokenizer files of
// `tokenizer_from` or, if that is empty, the built-in task's. InputError for an invalid shape, a
// vocabulary smaller than the tokenizer's, or a directory without a tokenizer.
void write_new_model(const NewModelConfig& shape, const std::filesystem::path& tokenizer_from,
                     const std::filesystem::path& directory);

}  // namespace antisd::inline trainer
