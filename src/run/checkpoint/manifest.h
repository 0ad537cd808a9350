// MANIFEST.json of a checkpoint: every file with its size and checksum. It is written last, so a
// folder without a sound one was never finished.
#pragma once

#include <cstdint>
#include <filesystem>

namespace antisd::inline run {

inline constexpr const char* kManifestName = "MANIFEST.json";

// Over all files now below `folder`. Reads each once. RunError.
void write_manifest(const std::filesystem::path& folder, std::int64_t step);

// InputError with the first thing that is wrong: the manifest itself, a file that is missing, of
// another size, or whose bytes are not those that were written. Sizes are compared before any file
// is read. Files that the manifest does not name are nobody's business.
void verify_manifest(const std::filesystem::path& folder, std::int64_t step);

}  // namespace antisd::inline run
