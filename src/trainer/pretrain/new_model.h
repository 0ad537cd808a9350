// The directory that a new model begins with: everything of a Hugging Face directory but weights.
#pragma once

#include <filesystem>

#include "config/run_config.h"

namespace antisd::inline trainer {

// config.json and generation_config.json of a Qwen3 model, with the tokenizer files of
// `tokenizer_from`, or, where that is empty, the built-in task's. InputError for a shape that is
// none, a vocabulary smaller than the tokenizer's, or a directory without a tokenizer.
void write_new_model(const NewModelConfig& shape, const std::filesystem::path& tokenizer_from,
                     const std::filesystem::path& directory);

}  // namespace antisd::inline trainer
