// A file's bytes in memory, read by the system when they are touched. Who shortens the file
// meanwhile ends the program, as with any mapped file; AtomicFile never does that to its target.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace antisd::inline io {

class MappedFile {
 public:
  // InputError where it cannot be read or is not a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace antisd::inline io
