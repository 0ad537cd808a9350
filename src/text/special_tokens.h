// The special tokens of a model directory by their roles: what chat templates call bos_token, eos_token, ...
#pragma once

#include <filesystem>

#include "io/json.h"

namespace antisd {

// {"eos_token": "<|im_end|>", ...}: the roles that tokenizer_config.json names, or, where it is silent,
// special_tokens_map.json. Roles that are null or absent are left out, as transformers leaves them
// undefined in templates. Empty where the directory has neither file.
Json named_special_tokens(const std::filesystem::path& model_directory);

}  // namespace antisd
