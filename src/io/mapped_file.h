// A file's bytes in memory, read by the system on access. If another program truncates the file,
// this program crashes, as with any mapped file; AtomicFile never truncates its target.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace antisd::inline io {

class MappedFile {
 public:
  // InputError if it cannot be read or is not a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace antisd::inline io
