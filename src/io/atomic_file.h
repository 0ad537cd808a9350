// Files that appear whole or not at all: written beside the target under another name, synced, then
// renamed over it.
//
//   AtomicFile file("model.safetensors");
//   file.write(header);
//   file.write(bytes);
//   file.commit();  // without it the destructor removes what was written
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace antisd::inline io {

// RunError with path and remedy for whatever the system refuses. A target that is not a regular
// file (a pipe, /dev/stdout) is written directly, since it cannot be replaced; a symbolic link
// stays one and its target is replaced.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // The file is durable under its own name when this returns.
  void commit();

  const std::filesystem::path& path() const { return path_; }
  // For writers that need a descriptor; it stays this object's and lives until commit().
  int descriptor() const { return descriptor_; }

 private:
  void abandon() noexcept;

  std::filesystem::path path_;       // as the caller names it
  std::filesystem::path target_;     // the same with symbolic links followed
  std::filesystem::path temporary_;  // empty where the target is written directly
  int descriptor_ = -1;
};

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

inline constexpr std::int64_t kMaxTextFileBytes = std::int64_t{1} << 30;

// InputError where the file is missing, no regular file, unreadable or longer than `max_bytes`.
std::string read_file(const std::filesystem::path& path,
                      std::int64_t max_bytes = kMaxTextFileBytes);

}  // namespace antisd::inline io
