// The ids that end a response, as a model directory names them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace antisd::inline inference {

// eos_token_id, a number or a list, of generation_config.json, else of config.json; none where
// neither names any. The tokenizer's own is the caller's to add. InputError for anything else.
std::vector<std::int32_t> read_stop_ids(const std::filesystem::path& model_directory);

}  // namespace antisd::inline inference
