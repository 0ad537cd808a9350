// Opens files that are read completely: only regular files, since a pipe or device could block the
// program or fill the memory.
//
//   const UniqueFd file = open_regular_file(model / "config.json");
#pragma once

#include <filesystem>

#include "io/unique_fd.h"

namespace antisd::inline io {

// For reading. InputError if it is missing, unreadable, or a folder, pipe, device or socket.
UniqueFd open_regular_file(const std::filesystem::path& path);

}  // namespace antisd::inline io
