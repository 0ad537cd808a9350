// Whether a model directory has a chat template, without reading it.
#pragma once

#include <filesystem>

namespace antisd::inline text {

bool has_chat_template(const std::filesystem::path& model);

}  // namespace antisd::inline text
