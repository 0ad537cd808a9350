#include "io/csv.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/jsonl.h"
#include "io/row_source.h"

namespace antisd::inline io {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

// "LINE row" of every record; an error is its message.
std::vector<std::string> records_of(const std::string& text) {
  std::istringstream stream(text);
  CsvReader reader(stream, "in");
  std::vector<std::string> records;
  while (true) {
    try {
      Json row;
      if (!reader.next(row)) return records;
      records.push_back(fmt::format("{} {}", reader.line(), to_json_line(row)));
    } catch (const InputError& error) {
      records.push_back(error.message());
    }
  }
}

TEST(CsvReader, ReadsQuotesNewlinesAndEveryLineEnd) {
  EXPECT_THAT(records_of("\xEF\xBB\xBF"
                         "a,b\r\n1,\"x, \"\"y\"\"\r\nz\"\r\n\r\n,\n\"\",q\"r"),
              ElementsAre(R"(2 {"a":"1","b":"x, \"y\"\r\nz"})", R"(5 {"a":"","b":""})",
                          R"(6 {"a":"","b":"q\"r"})"));
  EXPECT_THAT(records_of("a\r1\r\r2"), ElementsAre(R"(2 {"a":"1"})", R"(4 {"a":"2"})"));
  EXPECT_THAT(records_of("a\n\"\"\n\n"), ElementsAre(R"(2 {"a":""})"));
  EXPECT_THAT(records_of(""), ElementsAre());
  EXPECT_THAT(records_of("\n\n"), ElementsAre());
  EXPECT_THAT(records_of("a,b\n"), ElementsAre());
}

TEST(CsvReader, SaysWhereARecordIsWrongAndGoesOn) {
  EXPECT_THAT(records_of("a,b\n1\n\"x\ny\",2,3\n\"x\"y,2\n1,\xFF\n1,2\n"),
              ElementsAre(HasSubstr("in:2: 1 field where the header has 2"),
                          HasSubstr("in:3: 3 fields where the header has 2"),
                          HasSubstr("in:5: text follows the closing quote"),
                          HasSubstr("in:6: 'b' is not valid UTF-8"), R"(7 {"a":"1","b":"2"})"));
  EXPECT_THAT(records_of(std::string("a,b\n1,\0\n1,2\n", 12)),
              ElementsAre(HasSubstr("in:2: the record has NUL bytes"), R"(3 {"a":"1","b":"2"})"));
}

TEST(CsvReader, EndsWhereNoRecordCanBeFound) {
  EXPECT_THAT(
      records_of("a,b\n1,2\n1,\"x\n2,3\n"),
      ElementsAre(R"(2 {"a":"1","b":"2"})", HasSubstr("in:3: the quote of a field is not closed")));
  EXPECT_THAT(records_of("a,b,a\n1,2,3\n"), ElementsAre(HasSubstr("two columns are named 'a'")));
  EXPECT_THAT(records_of(std::string("a\0b\n1\n", 6)), ElementsAre(HasSubstr("NUL bytes")));
  EXPECT_THAT(records_of("\"a\"b\n1\n"), ElementsAre(HasSubstr("in:1: text follows")));
  EXPECT_THAT(records_of(std::string(20'000, ',') + "\n"),
              ElementsAre(HasSubstr("more than 10000 columns")));
  EXPECT_THAT(records_of("a\n" + std::string(20'000, ',') + "\n1\n"),
              ElementsAre(HasSubstr("over 10000 fields"), R"(3 {"a":"1"})"));
  EXPECT_THAT(records_of("a\n\"" + std::string(kMaxCsvFieldBytes + 10, 'x')),
              ElementsAre(HasSubstr("in:2: a field of more than 100000000 bytes")));
}

// Python's csv module writes awkward rows in several dialects and says what it reads in them.
constexpr const char* kPython = R"py(
import csv, json, random, sys
rng = random.Random(7)
pieces = ['a', ' ', ',', '"', '""', '\n', '\r\n', '\r', "'", '\\', ';', '\t', '\u00e9', '\U0001f600', '0.10', 'NULL', '\ufeff']
for number in range(40):
    columns = ['c%d' % i for i in range(rng.randint(1, 6))]
    columns[0] = rng.choice(['c0', 'a "b"', 'x,y', 'two\nlines', ' '])
    path = '%s/%d.csv' % (sys.argv[1], number)
    with open(path, 'w', newline='', encoding=rng.choice(['utf-8', 'utf-8-sig'])) as f:
        # With '\n' as the end, Python leaves a '\r' unquoted, which it then cannot read itself.
        quoting, end = rng.choice([(csv.QUOTE_MINIMAL, '\r\n'), (csv.QUOTE_ALL, '\n'),
                                   (csv.QUOTE_NONNUMERIC, '\r\n')])
        w = csv.writer(f, lineterminator=end, quoting=quoting)
        w.writerow(columns)
        for _ in range(rng.randint(0, 30)):
            w.writerow([''.join(rng.choices(pieces, k=rng.randint(0, 8))) for _ in columns])
    with open(path, newline='', encoding='utf-8-sig') as f, open(path + '.jsonl', 'w') as out:
        for row in csv.DictReader(f):
            out.write(json.dumps(row) + '\n')
)py";

TEST(CsvReader, ReadsWhatPythonReads) {
  TemporaryFolder folder;
  std::ofstream(folder / "write.py") << kPython;
  ASSERT_EQ(std::system(fmt::format("python3 '{}/write.py' '{}'", folder.path().string(),
                                    folder.path().string())
                            .c_str()),
            0);
  int rows = 0;
  for (int number = 0; number < 40; ++number) {
    RowSource ours(folder / fmt::format("{}.csv", number));
    JsonlReader theirs(folder / fmt::format("{}.csv.jsonl", number));
    Json row, expected;
    while (theirs.next(expected)) {
      ASSERT_TRUE(ours.next(row)) << number;
      ASSERT_EQ(row, expected) << ours.where();
      ++rows;
    }
    EXPECT_FALSE(ours.next(row)) << number;
  }
  EXPECT_GT(rows, 300);
}

TEST(CsvText, WritesWhatPythonReads) {
  TemporaryFolder folder;
  const std::vector<Json> rows = {
      {{"a", "x,\"y\"\nz\r\n"}, {"b\"", 1.5}, {"", Json::array({1, "t"})}},
      {{"a", ""}, {"b\"", nullptr}, {"", true}},
      {{"a", " \xC3\xA9 "}},
  };
  const CsvText text({"a", "b\"", ""});
  std::string file = text.header();
  for (const Json& row : rows)
    file += text.record(row);
  std::ofstream(folder / "rows.csv", std::ios::binary) << file;
  std::ofstream(folder / "read.py") << "import csv, json, sys\n"
                                       "with open(sys.argv[1], newline='') as f:\n"
                                       "    for row in csv.reader(f): print(json.dumps(row))\n";
  const std::string place = folder.path().string();
  ASSERT_EQ(
      std::system(fmt::format("python3 '{0}/read.py' '{0}/rows.csv' > '{0}/out'", place).c_str()),
      0);
  std::ifstream out(folder / "out");
  std::vector<Json> read;
  for (std::string line; std::getline(out, line);)
    read.push_back(Json::parse(line));
  EXPECT_THAT(read,
              ElementsAre(Json({"a", "b\"", ""}), Json({"x,\"y\"\nz\r\n", "1.5", "[1,\"t\"]"}),
                          Json({"", "", "true"}), Json({" \xC3\xA9 ", "", ""})));
  EXPECT_THAT(error_of([&] {
                text.record({{"c", 1}});
              }),
              HasSubstr("the row has 'c', which the first row lacks"));
}

}  // namespace
}  // namespace antisd::inline io
