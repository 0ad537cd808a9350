// What the card of a data set (the YAML at the top of its README.md) says about its files:
//
//   ---
//   configs:
//   - config_name: main
//     data_files:
//     - split: train
//       path: main/train-*
//   ---
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline data {

struct CardFiles {
  std::string config, split;
  std::vector<std::string> patterns;  // of paths from the data set's folder
  bool is_default = false;            // of its config
};

// Empty where the card says nothing, or in a form that is not read (YAML's flow style): the names
// of the files then tell.
std::vector<CardFiles> read_card(std::string_view text);

// Whether a path from the folder fits a pattern: * is anything within a folder's name, ** anything.
bool matches_pattern(const std::string& path, const std::string& pattern);

}  // namespace antisd::inline data
