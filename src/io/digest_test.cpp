#include "io/digest.h"

#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd::inline io {
namespace {

// The values of FIPS 180-4's examples.
TEST(Digest, OfTheStandard) {
  Sha1 sha1;
  sha1.add("abc");
  EXPECT_EQ(sha1.hex(), "a9993e364706816aba3e25717850c26c9cd0d89d");
  Sha256 sha256;
  EXPECT_EQ(sha256.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  sha256.add("abc");
  EXPECT_EQ(sha256.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// Every length around the ends of blocks, added in pieces, against coreutils.
TEST(Digest, AsCoreutilsGiveIt) {
  const testing::TemporaryFolder folder;
  std::string text, sums1, sums256;
  std::filesystem::create_directory(folder / "f");
  for (int size = 0; size < 200; ++size) {
    write_file_atomically(folder / fmt::format("f/{:03}", size), text);
    Sha1 sha1;
    Sha256 sha256;
    for (std::size_t at = 0; at < text.size(); at += 7) {
      sha1.add(std::string_view(text).substr(at, 7));
      sha256.add(std::string_view(text).substr(at, 7));
    }
    sums1 += sha1.hex() + "\n";
    sums256 += sha256.hex() + "\n";
    text += static_cast<char>(size * 37);
  }
  const std::string line = fmt::format(
      "cd '{}/f' && (sha1sum *; sha256sum *) | cut -d' ' -f1 > ../sums", folder.path().string());
  ASSERT_EQ(std::system(line.c_str()), 0);
  EXPECT_EQ(sums1 + sums256, read_file(folder / "sums"));
}

}  // namespace
}  // namespace antisd::inline io
