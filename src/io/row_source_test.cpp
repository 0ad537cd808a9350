#include "io/row_source.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/gzip_writer.h"
#include "io/text_source.h"

namespace antisd::inline io {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::string packed(std::string_view text) {
  std::string bytes;
  GzipWriter writer([&](std::string_view part) { bytes += part; });
  writer.write(text);
  writer.finish();
  return bytes;
}

class RowSourceTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, std::string_view bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  std::vector<std::string> rows_of(const std::filesystem::path& path) {
    RowSource source(path);
    std::vector<std::string> rows;
    for (Json row; source.next(row);)
      rows.push_back(to_json_line(row));
    return rows;
  }

  TemporaryFolder folder_;
};

TEST_F(RowSourceTest, UnpacksByTheBytesAndParsesByTheName) {
  const std::string jsonl = "{\"a\":\"1\"}\n{\"a\":\"2\"}\n", csv = "a\n1\n2\n";
  const auto two = ElementsAre("{\"a\":\"1\"}", "{\"a\":\"2\"}");
  EXPECT_THAT(rows_of(write("x.jsonl", jsonl)), two);
  EXPECT_THAT(rows_of(write("x.csv", csv)), two);
  EXPECT_THAT(rows_of(write("x.jsonl.gz", packed(jsonl))), two);
  EXPECT_THAT(rows_of(write("x.csv.gz", packed(csv))), two);
  // Names that lie.
  EXPECT_THAT(rows_of(write("y.jsonl", packed(jsonl))), two);
  EXPECT_THAT(rows_of(write("y.csv.gz", csv)), two);
  // Several members, and zeros behind the last.
  EXPECT_THAT(rows_of(write("z.jsonl.gz", packed("{\"a\":\"1\"}\n") + packed("") +
                                              packed("{\"a\":\"2\"}") + std::string(600, '\0'))),
              two);
  EXPECT_THAT(rows_of(write("empty.gz", "")), ElementsAre());
  EXPECT_THAT(rows_of(write("none.gz", packed(""))), ElementsAre());
  std::istringstream stream(packed(jsonl));
  RowSource source(stream, "standard input");
  Json row;
  ASSERT_TRUE(source.next(row) && source.next(row));
  EXPECT_EQ(source.where(), "standard input:2");
  EXPECT_FALSE(source.next(row));
}

// The system's gzip packs what we unpack, and unpacks what we pack.
TEST_F(RowSourceTest, AgreesWithGzip) {
  std::string text;
  for (int i = 0; i < 40'000; ++i)
    text += fmt::format("{{\"n\":{},\"square\":{}}}\n", i, i * 7919 % 10'007);
  const std::string plain = write("rows.jsonl", text).string();
  ASSERT_EQ(std::system(fmt::format("gzip -k '{}'", plain).c_str()), 0);
  EXPECT_EQ(read_text(folder_ / "rows.jsonl.gz"), text);
  write("ours.jsonl.gz", packed(text));
  ASSERT_EQ(std::system(fmt::format("gunzip '{}'", (folder_ / "ours.jsonl.gz").string()).c_str()),
            0);
  EXPECT_EQ(read_file(folder_ / "ours.jsonl"), text);
}

// Reads to the first error and checks that nothing comes behind it.
std::string damage(const std::filesystem::path& path) {
  RowSource source(path);
  const std::string message = error_of([&] {
    for (Json row; source.next(row);) {
    }
  });
  EXPECT_TRUE(source.is_broken()) << message;
  return message;
}

TEST_F(RowSourceTest, DamagedGzipDataAreOneMessage) {
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += fmt::format("{{\"n\":{}}}\n", i * 7919 % 10'007);
  const std::string whole = packed(text);
  for (const std::size_t length :
       {std::size_t{3}, std::size_t{12}, whole.size() / 2, whole.size() - 1})
    for (const char* name : {"cut.jsonl.gz", "cut.csv.gz"})
      EXPECT_THAT(damage(write(name, std::string_view(whole).substr(0, length))),
                  AllOf(HasSubstr(name), HasSubstr("end too early"), HasSubstr("again")));
  for (const std::size_t at : {whole.size() / 2, whole.size() - 6}) {
    std::string wrong = whole;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x55);
    RowSource source(write("wrong.jsonl.gz", wrong));
    // A wrong byte may first make a wrong row.
    std::string message;
    for (int errors = 0; !source.is_broken() && errors < 30'000;) {
      try {
        Json row;
        if (!source.next(row)) break;
      } catch (const InputError& error) {
        message = error.message();
        ++errors;
      }
    }
    EXPECT_THAT(message, AllOf(HasSubstr("wrong.jsonl.gz: the gzip data are damaged"),
                               HasSubstr("gunzip -t")));
  }
  EXPECT_THAT(damage(write("tail.jsonl.gz", packed("{}\n") + "tail")), HasSubstr("damaged"));
}

TEST_F(RowSourceTest, ABombIsStoppedAtALine) {
  const std::string zeros = packed(std::string(1 << 20, '0'));
  std::string bytes = packed("{\"a\":\"");
  for (int i = 0; i < 110; ++i)
    bytes += zeros;
  EXPECT_LT(bytes.size(), 1u << 18);
  EXPECT_THAT(damage(write("bomb.jsonl.gz", bytes)),
              AllOf(HasSubstr("bomb.jsonl.gz"), HasSubstr("100 MiB"), HasSubstr("gunzip")));
}

TEST_F(RowSourceTest, OtherFormatsAreNamedWithARemedy) {
  const std::pair<std::string, const char*> formats[] = {
      {std::string("PK\x03\x04zip"), "a zip archive or a workbook (.xlsx)"},
      {std::string("\x28\xB5\x2F\xFD...."), "packed with zstd"},
      {std::string("\xFD\x37\x7A\x58\x5A\x00..", 8), "packed with xz"},
      {std::string("ARROW1\0\0....", 12), "an Arrow file"},
      {std::string("\xFF\xFF\xFF\xFF\x10"), "an Arrow stream"},
      {std::string("\xFF\xFE{\0", 4), "UTF-16 text"},
      {std::string("\x80\x04\x95"), "a Python pickle"},
      {std::string("PAR1\x15\x04"), "a Parquet file"},
      {std::string("SQLite format 3\0", 16), "an SQLite data base"}};
  for (const auto& [bytes, what] : formats) {
    for (const char* name : {"rows.jsonl", "rows.csv"})
      EXPECT_THAT(damage(write(name, bytes)), HasSubstr(fmt::format("{}: it is {}; ", name, what)));
    EXPECT_THAT(damage(write("packed.csv.gz", packed(bytes))), HasSubstr(what));
  }
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  EXPECT_THAT(damage(write("rows.tar.gz", packed(tar))), HasSubstr("a tar archive"));
  // Text that only begins alike.
  EXPECT_THAT(rows_of(write("names.csv", "PAR1,BZh\n1,2\n")),
              ElementsAre("{\"PAR1\":\"1\",\"BZh\":\"2\"}"));
  EXPECT_THAT(rows_of(write("p.csv", "P\n1")), ElementsAre("{\"P\":\"1\"}"));
}

TEST_F(RowSourceTest, SaysWhyAFileCannotBeRead) {
  EXPECT_THAT(error_of([&] { RowSource source(folder_ / "none.csv.gz"); }),
              HasSubstr("none.csv.gz: cannot be read"));
  EXPECT_THAT(error_of([&] { RowSource source(folder_.path()); }), HasSubstr("it is a folder"));
  Json row;
  RowSource broken("/proc/self/mem");  // opens, but reading address 0 fails
  EXPECT_THROW(broken.next(row), RunError);
}

}  // namespace
}  // namespace antisd::inline io
