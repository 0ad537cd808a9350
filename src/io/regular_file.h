// Opening files that are read whole: a file and nothing else, so that no pipe or device in its
// place can keep the program waiting or fill the memory.
//
//   const UniqueFd file = open_regular_file(model / "config.json");
#pragma once

#include <filesystem>

#include "io/unique_fd.h"

namespace antisd::inline io {

// For reading. InputError where it is missing, unreadable, or a folder, pipe, device or socket.
UniqueFd open_regular_file(const std::filesystem::path& path);

}  // namespace antisd::inline io
