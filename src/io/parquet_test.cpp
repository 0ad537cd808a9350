#include "io/parquet.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/jsonl.h"
#include "io/parquet_library.h"

namespace antisd::inline io {
namespace {

using ::testing::AllOf;
using testing::error_of;
using testing::fixture;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::vector<Json> read_rows(const std::filesystem::path& path) {
  ParquetReader reader(path);
  std::vector<Json> rows;
  for (Json row; reader.next(row);)
    rows.push_back(row);
  EXPECT_EQ(reader.row_count(), static_cast<std::int64_t>(rows.size()));
  return rows;
}

void write_rows(const std::filesystem::path& path, const std::vector<Json>& rows) {
  std::size_t next = 0;
  write_parquet(path, [&](Json& row) {
    if (next == rows.size()) return false;
    row = rows[next++];
    return true;
  });
}

// Skips where the library was not built (-DANTISD_PARQUET=OFF).
#define NEEDS_PARQUET()                                                                            \
  if (!std::filesystem::exists(std::filesystem::path(ANTISD_BINARY_DIR) / "libantisd_parquet.so")) \
  GTEST_SKIP() << "built without Parquet"

TEST(ParquetReader, ReadsEveryTypeThatPyarrowWrites) {
  NEEDS_PARQUET();
  const std::vector<Json> rows = read_rows(fixture("io/types.parquet"));
  JsonlReader expected(fixture("io/types.jsonl"));
  std::size_t next = 0;
  for (Json row; expected.next(row); ++next) {
    ASSERT_LT(next, rows.size());
    for (const auto& [key, value] : row.items())
      EXPECT_EQ(to_json_line(rows[next].at(key)), to_json_line(value)) << key << " of row " << next;
    EXPECT_EQ(rows[next].size(), row.size());
  }
  EXPECT_EQ(next, rows.size());
}

TEST(ParquetReader, GoesThroughManyRowGroupsAndPages) {
  NEEDS_PARQUET();
  const std::vector<Json> rows = read_rows(fixture("io/many.parquet"));
  ASSERT_EQ(rows.size(), 5000u);
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (int k = 0; k < i % 7; ++k)
      text += std::to_string(i);
    ASSERT_EQ(rows[i], (Json{{"n", i}, {"s", text}}));
  }
}

TEST(ParquetReader, NamesTheValueThatIsNoTextAndGoesOn) {
  NEEDS_PARQUET();
  ParquetReader reader(fixture("io/not_utf8.parquet"));
  Json row;
  ASSERT_TRUE(reader.next(row));
  EXPECT_THAT(
      error_of([&] { reader.next(row); }),
      AllOf(HasSubstr("not_utf8.parquet:row 2: column chat[1].b: bytes that are not UTF-8")));
  ASSERT_TRUE(reader.next(row));
  EXPECT_EQ(row["n"], 3);
  EXPECT_FALSE(reader.next(row));
}

TEST(ParquetReader, RefusesAColumnNameThatAppearsTwice) {
  NEEDS_PARQUET();
  ParquetReader reader(fixture("io/twice.parquet"));
  Json row;
  EXPECT_THAT(error_of([&] { reader.next(row); }), HasSubstr("\"a\" appears twice"));
}

TEST(ParquetReader, RefusesBrokenFiles) {
  NEEDS_PARQUET();
  TemporaryFolder folder;
  const std::string whole = read_file(fixture("io/types.parquet"));
  const auto read_all = [&](const std::string& bytes) {
    write_file_atomically(folder / "x.parquet", bytes);
    read_rows(folder / "x.parquet");
  };
  EXPECT_THAT(error_of([&] { read_all(""); }), HasSubstr("not a readable Parquet file"));
  EXPECT_THAT(error_of([&] { read_all("PAR1"); }), HasSubstr("not a readable Parquet file"));
  EXPECT_THAT(error_of([&] { read_all(std::string(5000, 'x')); }), HasSubstr("not a readable"));
  EXPECT_THAT(error_of([&] { read_all(whole.substr(0, whole.size() / 2)); }),
              HasSubstr("not a readable"));
  EXPECT_THAT(error_of([&] { read_all(whole.substr(0, whole.size() / 2) + "PAR1"); }),
              HasSubstr("not a readable"));
  EXPECT_THAT(error_of([&] { ParquetReader reader(folder / "none.parquet"); }),
              HasSubstr("no such file"));
  EXPECT_THAT(error_of([&] { ParquetReader reader(folder.path()); }), HasSubstr("it is a folder"));
}

// Damage anywhere may give other values or an Error, nothing else.
TEST(ParquetReader, SurvivesDamageAnywhere) {
  NEEDS_PARQUET();
  TemporaryFolder folder;
  const std::string whole = read_file(fixture("io/types.parquet"));
  int refused = 0;
  for (std::size_t position = 0; position < whole.size(); position += 23) {
    std::string damaged = whole;
    damaged[position] = static_cast<char>(damaged[position] ^ (1 << position % 8));
    std::ofstream(folder / "x.parquet", std::ios::binary) << damaged;
    try {
      ParquetReader reader(folder / "x.parquet");
      for (Json row; reader.next(row);) {
      }
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(ParquetReader, ReadsRealFiles) {
  const auto path = testing::shared_data("parquet/svs_dapo_math_17k.parquet");
  ANTISD_NEEDS_SHARED(path);
  NEEDS_PARQUET();
  const std::vector<Json> rows = read_rows(path);
  ASSERT_EQ(rows.size(), 17917u);
  EXPECT_TRUE(rows[0].at("prompt").at(0).at("content").is_string());
  EXPECT_TRUE(rows[17916].at("reward_model").at("ground_truth").is_string());
}

TEST(WriteParquet, RowsComeBackAsTheyWere) {
  NEEDS_PARQUET();
  TemporaryFolder folder;
  const auto path = folder / "x.parquet";
  const std::vector<Json> rows = {
      parse_json(R"({"s": "é", "n": -5, "list": [1, 2], "deep": {"a": [{"b": null}, {"b": "x"}]}})",
                 ""),
      parse_json(R"({"s": "", "n": null, "list": [], "deep": {"a": []}})", ""),
      parse_json(R"({"s": null, "n": 9223372036854775807, "list": null, "deep": {"a": null}})", ""),
      parse_json(R"({"s": "z", "n": 0, "list": [null], "deep": null})", ""),
  };
  write_rows(path, rows);
  EXPECT_EQ(read_rows(path), rows);
}

TEST(WriteParquet, TakesTheUnionOfKeysAndWidensIntegers) {
  NEEDS_PARQUET();
  TemporaryFolder folder;
  const auto path = folder / "x.parquet";
  write_rows(path, {parse_json(R"({"a": 1, "c": [1]})", ""),
                    parse_json(R"({"b": true, "a": 2.5, "c": [0.5, 2], "d": null, "e": []})", "")});
  const std::vector<Json> rows = read_rows(path);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(to_json_line(rows[0]), R"({"a":1.0,"c":[1.0],"b":null,"d":null,"e":null})");
  EXPECT_EQ(to_json_line(rows[1]), R"({"a":2.5,"c":[0.5,2.0],"b":true,"d":null,"e":[]})");
}

TEST(WriteParquet, NamesWhatDoesNotFitTogether) {
  NEEDS_PARQUET();
  TemporaryFolder folder;
  const auto path = folder / "x.parquet";
  const auto problem = [&](const char* first, const char* second) {
    return error_of([&] {
      write_rows(path, {{{"ok", 1}}, parse_json(first, ""), parse_json(second, "")});
    });
  };
  EXPECT_THAT(
      problem(R"({"a": {"b": [1]}})", R"({"a": {"b": ["x"]}})"),
      AllOf(HasSubstr("x.parquet: column a.b[] "),
            HasSubstr("row 3 has a value of type string where row 2 has one of type integer")));
  EXPECT_THAT(problem(R"({"a": 1})", R"({"a": {}})"), HasSubstr("column a "));
  EXPECT_THAT(problem(R"({"a": true})", R"({"a": 1})"), HasSubstr("column a "));
  EXPECT_THAT(problem(R"({"a": 9007199254740993})", R"({"a": 0.5})"), HasSubstr("beyond 2^53"));
  EXPECT_THAT(problem(R"({"a": 0.5})", R"({"a": 9007199254740993})"), HasSubstr("beyond 2^53"));
  EXPECT_THAT(problem(R"({"a": 1})", R"({"a": 9223372036854775808})"), HasSubstr("does not fit"));
  EXPECT_THAT(problem(R"({"a": {}})", R"({"a": null})"), HasSubstr("empty in every row"));
  EXPECT_THAT(error_of([&] { write_rows(path, {Json::array()}); }),
              HasSubstr("row 1 is not a JSON"));
  EXPECT_THAT(error_of([&] { write_rows(path, {{{"a", "\xFF"}}}); }), HasSubstr("not UTF-8"));
  EXPECT_THAT(error_of([&] { write_rows(path, {Json::object()}); }), HasSubstr("without any key"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(WriteParquet, WritesNoRowsAndManyRows) {
  NEEDS_PARQUET();
  TemporaryFolder folder;
  write_rows(folder / "none.parquet", {});
  EXPECT_TRUE(read_rows(folder / "none.parquet").empty());
  int next = 0;
  write_parquet(folder / "many.parquet", [&](Json& row) {
    row = Json{{"n", next}, {"s", std::to_string(next)}};
    return next++ < 150'000;  // more than two row groups
  });
  ParquetReader reader(folder / "many.parquet");
  EXPECT_EQ(reader.row_count(), 150'000);
  int seen = 0;
  for (Json row; reader.next(row); ++seen)
    ASSERT_EQ(row["s"], std::to_string(seen));
  EXPECT_EQ(seen, 150'000);
}

TEST(WriteParquet, BoundsTheDepth) {
  NEEDS_PARQUET();
  TemporaryFolder folder;
  const auto path = folder / "x.parquet";
  const auto nested = [](int lists) {
    return parse_json("{\"a\":" + std::string(lists, '[') + "1" + std::string(lists, ']') + "}",
                      "");
  };
  write_rows(path, {nested(29)});
  EXPECT_EQ(read_rows(path), std::vector<Json>{nested(29)});
  EXPECT_THAT(error_of([&] { write_rows(path, {nested(30)}); }),
              HasSubstr("row 1 is nested deeper than 30 levels"));
}

TEST(WriteParquet, ReportsAFullDisk) {
  NEEDS_PARQUET();
  EXPECT_THROW(write_rows("/dev/full", {{{"a", 1}}}), RunError);
}

TEST(ParquetLibrary, SaysWhatIsMissing) {
  TemporaryFolder folder;
  const auto load = [&] { find_parquet_library(folder.path(), "rows.parquet"); };
  ::unsetenv("ANTISD_PARQUET_LIBRARY");
  EXPECT_THAT(error_of(load),
              AllOf(HasSubstr("rows.parquet: Parquet files need libantisd_parquet.so"),
                    HasSubstr("not there"), HasSubstr("run `make`"), HasSubstr("JSONL")));
  write_file_atomically(folder / "other.so", "no library");
  ::setenv("ANTISD_PARQUET_LIBRARY", (folder / "other.so").c_str(), 1);
  EXPECT_THAT(error_of(load), AllOf(HasSubstr("not there"), HasSubstr("other.so: ")));
  ::unsetenv("ANTISD_PARQUET_LIBRARY");
}

TEST(ParquetLibrary, IsFoundThroughTheEnvironment) {
  NEEDS_PARQUET();
  TemporaryFolder folder;
  ::setenv("ANTISD_PARQUET_LIBRARY", ANTISD_BINARY_DIR "/libantisd_parquet.so", 1);
  EXPECT_EQ(find_parquet_library(folder.path(), "x").version, kAntisdParquetVersion);
  ::unsetenv("ANTISD_PARQUET_LIBRARY");
}

TEST(IsParquet, GoesByNameOrFirstBytes) {
  TemporaryFolder folder;
  EXPECT_TRUE(is_parquet("a.parquet"));
  EXPECT_TRUE(is_parquet("a.PQ"));
  EXPECT_FALSE(is_parquet("a.jsonl"));
  EXPECT_FALSE(is_parquet(folder.path()));
  write_file_atomically(folder / "data", "PAR1 and so on");
  EXPECT_TRUE(is_parquet(folder / "data"));
  write_file_atomically(folder / "data", "PAR");
  EXPECT_FALSE(is_parquet(folder / "data"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(is_parquet(folder / "pipe"));  // does not wait for a writer
}

}  // namespace
}  // namespace antisd::inline io
