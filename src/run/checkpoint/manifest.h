// MANIFEST.json of a checkpoint: every file with its size and checksum. It is written last, so a
// folder without a valid one was never finished.
#pragma once

#include <cstdint>
#include <filesystem>

namespace antisd::inline run {

inline constexpr const char* kManifestName = "MANIFEST.json";

// Lists all files now below `folder`; reads each once. RunError.
void write_manifest(const std::filesystem::path& folder, std::int64_t step);

// InputError with the first problem: the manifest itself, or a file that is missing, has another
// size, or has other bytes. Sizes are compared before any file is read. Files that the manifest
// does not list are ignored.
void verify_manifest(const std::filesystem::path& folder, std::int64_t step);

}  // namespace antisd::inline run
