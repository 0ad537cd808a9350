// The ids that end a response, from a model directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace antisd::inline inference {

// eos_token_id, a number or a list, of generation_config.json, else of config.json; empty if
// neither has one. The caller adds the tokenizer's own. InputError for anything else.
std::vector<std::int32_t> read_stop_ids(const std::filesystem::path& model_directory);

}  // namespace antisd::inline inference
