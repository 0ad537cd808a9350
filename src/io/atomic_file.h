// Files that appear complete or not at all: written beside the target under another name, synced,
// then renamed over it.
//
//   AtomicFile file("model.safetensors");
//   file.write(header);
//   file.write(bytes);
//   file.commit();  // without it the destructor removes the file
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace antisd::inline io {

// RunError with path and remedy if the system fails. A target that is not a regular file (a pipe,
// /dev/stdout) is written directly, since it cannot be replaced; of a symbolic link, the target is
// replaced.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // When this returns, the file is durable under its own name.
  void commit();

  const std::filesystem::path& path() const { return path_; }
  // For writers that need a descriptor; this object owns it until commit().
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

// InputError if the file is missing, not a regular file, unreadable or longer than `max_bytes`.
std::string read_file(const std::filesystem::path& path,
                      std::int64_t max_bytes = kMaxTextFileBytes);

}  // namespace antisd::inline io
