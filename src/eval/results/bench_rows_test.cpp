#include "eval/results/bench_rows.h"

#include <fstream>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd::inline eval {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Json kSettings = {{"n", 2}, {"temperature", 0.7}, {"weights", "abc"}};

std::vector<SampleRow> samples(std::int64_t problem) {
  std::vector<SampleRow> rows;
  for (std::int64_t s = 0; s < 2; ++s)
    rows.push_back({.id = "p",
                    .problem = problem,
                    .sample = s,
                    .response = "r\n\xff",
                    .extracted = "",
                    .correct = s == 0,
                    .reason = "",
                    .tokens = problem,
                    .settings = ""});
  return rows;
}

class BenchRowsTest : public ::testing::Test {
 protected:
  BenchRows open(const Json& settings = kSettings) const {
    return BenchRows(folder_.path(), "b", settings, 3, 2);
  }
  std::string bytes() const { return read_file(folder_ / "b.jsonl"); }
  testing::TemporaryFolder folder_;
};

TEST_F(BenchRowsTest, GoOnAndEndAsIfNeverStopped) {
  std::string whole;
  {
    BenchRows rows = open();
    for (const std::int64_t problem : {0, 1, 2})
      rows.add(samples(problem));
    rows.finish();
    whole = bytes();
  }
  remove_evaluation(folder_.path(), {"b"});
  {
    BenchRows rows = open();
    rows.add(samples(2));
  }
  BenchRows rows = open();
  EXPECT_TRUE(rows.has(2));
  EXPECT_FALSE(rows.has(0));
  EXPECT_EQ(rows.done(), 1);
  rows.add(samples(1));
  rows.add(samples(0));
  rows.finish();
  EXPECT_EQ(bytes(), whole);
  EXPECT_EQ(read_rows(folder_ / "b.jsonl").size(), 6u);
}

TEST_F(BenchRowsTest, DropWhatAKillTore) {
  {
    BenchRows rows = open();
    rows.add(samples(0));
    rows.add(samples(1));
  }
  const std::string all = bytes();
  for (const std::size_t cut : {all.size() - 1, all.size() - 10, all.size() * 3 / 4 + 5}) {
    write_file_atomically(folder_ / "b.jsonl", all.substr(0, cut));
    BenchRows rows = open();
    const bool only_line_end = cut == all.size() - 1;
    EXPECT_EQ(rows.done(), only_line_end ? 2 : 1) << cut;
    rows.add(samples(2));
    rows.finish();
    EXPECT_EQ(read_rows(folder_ / "b.jsonl").size(), only_line_end ? 6u : 4u);
  }
}

TEST_F(BenchRowsTest, RefuseOtherSettingsAndSayWhich) {
  open().add(samples(0));
  Json other = kSettings;
  other["temperature"] = 1.0;
  other["weights"] = "def";
  EXPECT_THAT(testing::error_of([&] { open(other); }),
              AllOf(HasSubstr("b.jsonl"), HasSubstr("temperature was 0.7 and is 1"),
                    HasSubstr("other weights"), HasSubstr("--again")));
  EXPECT_EQ(open().done(), 1);  // nothing was lost
  remove_evaluation(folder_.path(), {"b"});
  EXPECT_EQ(open(other).done(), 0);
}

TEST_F(BenchRowsTest, RefuseRowsWithoutSettings) {
  open().add(samples(0));
  std::filesystem::remove(folder_ / "settings.json");
  EXPECT_THAT(testing::error_of([&] { open(); }), HasSubstr("other settings"));
}

}  // namespace
}  // namespace antisd::inline eval
