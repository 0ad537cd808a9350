// XXH3 (128 bits) of bytes and files, as 32 hexadecimal digits: detects damage, not forgery.
// `xxhsum -H2` prints the same text, so a user can check a file without this program.
//
//   Checksum sum;
//   sum.add(header);
//   sum.add(bytes);
//   record["xxh3"] = sum.hex();
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace antisd::inline io {

class Checksum {
 public:
  Checksum();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  std::string hex() const;  // of everything added so far

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

std::string checksum_of(std::string_view bytes);
// InputError if the file cannot be read.
std::string checksum_of_file(const std::filesystem::path& path);

}  // namespace antisd::inline io
