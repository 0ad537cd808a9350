#include "io/regular_file.h"

#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/jsonl.h"
#include "io/mapped_file.h"

namespace antisd::inline io {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Everything that reads a whole file. A pipe without a writer would block it for ever.
TEST(RegularFile, APipeOrDeviceIsRefusedAtOnce) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path pipe = folder / "config.json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto is_a_pipe =
      AllOf(HasSubstr(pipe.string()), HasSubstr("a pipe, where a file is needed"));
  EXPECT_THAT(testing::error_of([&] { read_file(pipe); }), is_a_pipe);
  EXPECT_THAT(testing::error_of([&] { checksum_of_file(pipe); }), is_a_pipe);
  EXPECT_THAT(testing::error_of([&] { MappedFile{pipe}; }), is_a_pipe);
  EXPECT_THAT(testing::error_of([] { read_file("/dev/zero"); }), HasSubstr("a device"));
  EXPECT_THAT(testing::error_of([&] { read_file(folder.path()); }), HasSubstr("a folder"));
  EXPECT_THAT(testing::error_of([&] { read_file(folder / "none"); }), HasSubstr("no such file"));
}

TEST(RegularFile, ALinkToAFileIsAFile) {
  const testing::TemporaryFolder folder;
  write_file_atomically(folder / "text", "words");
  std::filesystem::create_symlink("text", folder / "link");
  EXPECT_EQ(read_file(folder / "link"), "words");
}

// Rows may come from anywhere, most often from a pipe.
TEST(RegularFile, RowsStillComeThroughAPipe) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path pipe = folder / "rows";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "{\"a\": 1}\n{\"a\": 2}\n"; });
  std::vector<int> values;
  JsonlReader reader(pipe);
  for (Json row; reader.next(row);)
    values.push_back(row["a"]);
  writer.join();
  EXPECT_THAT(values, ::testing::ElementsAre(1, 2));
}

}  // namespace
}  // namespace antisd::inline io
