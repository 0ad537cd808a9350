#include "io/checksum.h"

#include <cerrno>
#include <new>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include "io/regular_file.h"
#include "io/system_error.h"

namespace antisd::inline io {

Checksum::Checksum() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void Checksum::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

void Checksum::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

void Checksum::add(std::string_view text) {
  add(std::as_bytes(std::span(text)));
}

std::string Checksum::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string checksum_of(std::string_view bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.hex();
}

std::string checksum_of_file(const std::filesystem::path& path) {
  const UniqueFd file = open_regular_file(path);
  Checksum sum;
  std::vector<std::byte> chunk(1 << 20);
  while (true) {
    const ssize_t count = ::read(file.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_cannot_read(path, errno);
    if (count == 0) return sum.hex();
    sum.add(std::span(chunk).first(static_cast<std::size_t>(count)));
  }
}

}  // namespace antisd::inline io
