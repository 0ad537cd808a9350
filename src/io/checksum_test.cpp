#include "io/checksum.h"

#include <gtest/gtest.h>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd::inline io {
namespace {

std::string counting_bytes(int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i)
    bytes.push_back(static_cast<char>(i % 251));
  return bytes;
}

// The values are those of the PyPI package xxhash (xxh3_128_hexdigest).
TEST(Checksum, GivesThePublishedValues) {
  EXPECT_EQ(checksum_of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(checksum_of("abc"), "06b05ab6733a618578af5f94892f3950");
  EXPECT_EQ(checksum_of(counting_bytes(3'000'001)), "5f783874605563482ce140c441f3a060");
}

TEST(Checksum, DoesNotDependOnTheCuts) {
  const std::string bytes = counting_bytes(5000);
  Checksum sum;
  for (std::size_t begin = 0, size = 1; begin < bytes.size(); begin += size, size = size * 2 + 1)
    sum.add(std::string_view(bytes).substr(begin, size));
  EXPECT_EQ(sum.hex(), checksum_of(bytes));
}

TEST(Checksum, ReadsFilesInPieces) {
  testing::TemporaryFolder folder;
  const std::string bytes = counting_bytes(3'000'001);
  write_file_atomically(folder / "data", bytes);
  EXPECT_EQ(checksum_of_file(folder / "data"), checksum_of(bytes));
  EXPECT_THROW(checksum_of_file(folder / "none"), InputError);
  EXPECT_THROW(checksum_of_file(folder.path()), InputError);
}

}  // namespace
}  // namespace antisd::inline io
