// SHA-1 and SHA-256, as hexadecimal digits in lower case: the names that git and the Hugging Face
// hub give to contents. `sha1sum` and `sha256sum` print the same.
//
//   Sha256 digest;
//   digest.add(bytes);
//   digest.hex();
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace antisd::inline io {

// Both hashes cut the text into blocks of 64 bytes and pad the last one in the same way.
template <std::size_t kWords>
class BlockDigest {
 public:
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  std::string hex() const;  // of everything added so far

 private:
  void mix(const std::byte* block);

  static constexpr std::size_t kBlock = 64;
  static std::array<std::uint32_t, kWords> initial();
  std::array<std::uint32_t, kWords> state_ = initial();
  std::array<std::byte, kBlock> rest_{};
  std::size_t rest_size_ = 0;
  std::uint64_t size_ = 0;
};

using Sha1 = BlockDigest<5>;
using Sha256 = BlockDigest<8>;

}  // namespace antisd::inline io
