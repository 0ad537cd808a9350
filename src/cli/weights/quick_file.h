// The run.toml of `quickstart`: every key with the reason for its value above it.
//
//   std::cout << quick_toml("Qwen3-0.6B on a CPU", {{"train.steps", "10", "Enough to see it."}});
#pragma once

#include <string>
#include <vector>

#include "plan/quick_choice.h"

namespace antisd::inline cli {

// Sections in the order of their first key.
std::string quick_toml(const std::string& heading, const std::vector<QuickSetting>& settings);

// What the user gave as key=value, each as a setting with its value. InputError for unknown keys.
std::vector<QuickSetting> given_settings(const std::vector<std::string>& assignments);

}  // namespace antisd::inline cli
