#include "io/jsonl.h"

#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/testing.h"

namespace antisd::inline io {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::vector<std::string> rows_of(const std::string& text) {
  std::istringstream stream(text);
  JsonlReader reader(stream, "in");
  std::vector<std::string> rows;
  for (Json row; reader.next(row);)
    rows.push_back(fmt::format("{} {}", reader.line(), to_json_line(row)));
  return rows;
}

TEST(JsonlReader, SkipsBlankLinesAndToleratesMarkAndCarriageReturns) {
  EXPECT_THAT(rows_of("\xEF\xBB\xBF{\"a\":1}\r\n\r\n \t\n{\"b\":2}\n\n{\"c\":3}"),
              ElementsAre("1 {\"a\":1}", "4 {\"b\":2}", "6 {\"c\":3}"));
  EXPECT_THAT(rows_of(""), ElementsAre());
  EXPECT_THAT(rows_of("\n\n"), ElementsAre());
  EXPECT_THAT(rows_of("\xEF\xBB\xBF"), ElementsAre());
  EXPECT_THAT(rows_of("{}\n\xEF\xBB\xBF\n\xEF\xBB\xBF{\"a\":1}"),
              ElementsAre("1 {}", "3 {\"a\":1}"));
}

TEST(JsonlReader, GoesOnBehindABadLine) {
  std::istringstream stream("{\"a\":1}\n{\"a\":\n[1]\n\n\xFF\n{\"a\":2}");
  JsonlReader reader(stream, "rows.jsonl");
  Json row;
  ASSERT_TRUE(reader.next(row));
  EXPECT_THAT(error_of([&] { reader.next(row); }), HasSubstr("rows.jsonl:2: not valid JSON"));
  EXPECT_THAT(error_of([&] { reader.next(row); }),
              HasSubstr("rows.jsonl:3: a JSON array where an object is expected"));
  EXPECT_THAT(error_of([&] { reader.next(row); }), HasSubstr("rows.jsonl:5: not valid JSON"));
  ASSERT_TRUE(reader.next(row));
  EXPECT_EQ(row["a"], 2);
  EXPECT_EQ(reader.where(), "rows.jsonl:6");
  EXPECT_FALSE(reader.next(row));
  EXPECT_FALSE(reader.next(row));
}

// Lengths around the reader's chunk of 64 KiB, where an off-by-one would lose or double a byte.
TEST(JsonlReader, ReadsLinesOfEveryLengthAroundItsChunk) {
  for (const std::size_t length :
       {65525, 65526, 65527, 65528, 65529, 131063, 131064, 131065, 1 << 20}) {
    const std::string value(length, 'x');
    const std::string line = "{\"a\":\"" + value + "\"}";
    for (const std::string end : {"", "\n", "\r\n"}) {
      std::istringstream stream(line + end + (end.empty() ? "" : "{\"b\":1}"));
      JsonlReader reader(stream, "in");
      Json row;
      ASSERT_TRUE(reader.next(row)) << length;
      EXPECT_EQ(row["a"].get_ref<const std::string&>(), value);
      EXPECT_EQ(reader.next(row), !end.empty()) << length;
      EXPECT_EQ(reader.line(), end.empty() ? 1 : 2);
    }
  }
}

TEST(JsonlReader, KeepsNulBytesInsideItsLine) {
  std::istringstream stream(std::string("{\"a\":\0}\n{\"a\":1}\n", 16));
  JsonlReader reader(stream, "in");
  Json row;
  EXPECT_THAT(error_of([&] { reader.next(row); }), HasSubstr("in:1: not valid JSON"));
  ASSERT_TRUE(reader.next(row));
  EXPECT_EQ(row["a"], 1);
}

TEST(JsonlReader, DeliversARowOfAPipeBeforeTheNextOneIsWritten) {
  TemporaryFolder folder;
  const auto path = folder / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  int answer[2];
  ASSERT_EQ(pipe(answer), 0);
  // Writes the second row only after the first was read: a reader that waits for a full buffer
  // would hang here (until the test's time limit).
  std::thread producer([&] {
    std::ofstream out(path);
    out << "{\"n\":1}\n" << std::flush;
    char byte;
    if (read(answer[0], &byte, 1) == 1) out << "{\"n\":2}\n";
  });
  JsonlReader reader(path);
  Json row;
  EXPECT_TRUE(reader.next(row));
  EXPECT_EQ(row["n"], 1);
  EXPECT_EQ(write(answer[1], "x", 1), 1);
  EXPECT_TRUE(reader.next(row));
  EXPECT_EQ(row["n"], 2);
  EXPECT_FALSE(reader.next(row));
  producer.join();
  close(answer[0]), close(answer[1]);
}

TEST(JsonlReader, SaysWhyAFileCannotBeOpened) {
  TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { JsonlReader reader(folder / "none.jsonl"); }),
              AllOf(HasSubstr("none.jsonl: cannot be read"), HasSubstr("no such file")));
  EXPECT_THAT(error_of([&] { JsonlReader reader(folder.path()); }), HasSubstr("it is a folder"));
  EXPECT_THROW(JsonlReader("/proc/self/mem/x"), InputError);
  Json row;
  JsonlReader broken("/proc/self/mem");  // opens, but reading address 0 fails
  EXPECT_THROW(broken.next(row), RunError);
}

TEST(JsonlReader, ReadsRealFiles) {
  const auto path = testing::shared_data("train/dapo_math_17k.jsonl");
  ANTISD_NEEDS_SHARED(path);
  JsonlReader reader(path);
  int rows = 0;
  for (Json row; reader.next(row);)
    ++rows;
  std::ifstream file(path);
  EXPECT_EQ(rows, std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

TEST(JsonlWriter, WritesWhatTheReaderReads) {
  TemporaryFolder folder;
  const auto path = folder / "rows.jsonl";
  const Json first = {{"z", "line\nend \xC3\xA9"}, {"a", {1, 2.5, nullptr}}};
  {
    JsonlWriter writer(path);
    writer.write(first);
    writer.flush();
    JsonlReader reader(path);
    Json row;
    ASSERT_TRUE(reader.next(row));
    EXPECT_EQ(row, first);
  }
  JsonlWriter appending(path, JsonlWriter::Mode::kAppend);
  appending.write({{"b", 1}});
  appending.close();
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(text, "{\"z\":\"line\\nend \xC3\xA9\",\"a\":[1,2.5,null]}\n{\"b\":1}\n");
}

TEST(JsonlWriter, ReportsAFullDisk) {
  JsonlWriter writer("/dev/full");
  writer.write({{"a", 1}});
  EXPECT_THAT(error_of([&] { writer.flush(); }),
              AllOf(HasSubstr("/dev/full: cannot be written: no space"), HasSubstr("free some")));
  EXPECT_THROW(JsonlWriter("/nonexistent/rows.jsonl"), RunError);
}

}  // namespace
}  // namespace antisd::inline io
