// For tests only: fixture programs, one file each.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/testing.h"

namespace antisd::testing {

// The files of testdata/<folder> without their extensions, sorted.
inline std::vector<std::string> fixture_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture(folder)))
    names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace antisd::testing
