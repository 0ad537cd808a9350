#include "io/mapped_file.h"

#include <cerrno>
#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/regular_file.h"
#include "io/system_error.h"

namespace antisd::inline io {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const UniqueFd file = open_regular_file(path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_cannot_read(path, errno);
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) throw_cannot_read(path, errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace antisd::inline io
