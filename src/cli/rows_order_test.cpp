#include <iostream>
#include <sstream>

#include <gmock/gmock.h>

#include "cli/rows.h"
#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd::inline cli {
namespace {

// The standard output of run_rows.
std::string output_of(const RowStreamOptions& options, const std::function<Json(const Json&)>& work,
                      int workers) {
  std::ostringstream text;
  std::streambuf* const before = std::cout.rdbuf(text.rdbuf());
  try {
    run_rows(options, work, workers);
  } catch (const InputError& error) {
    text << "stopped: " << error.problem();
  }
  std::cout.rdbuf(before);
  return text.str();
}

class RowOrder : public ::testing::Test {
 protected:
  RowOrder() {
    std::string rows;
    for (int i = 0; i < 600; ++i)
      rows += i % 101 == 100 ? "no row\n" : to_json_line({{"id", i}, {"n", i * 7 % 31}}) + "\n";
    write_file_atomically(folder_ / "rows.jsonl", rows);
  }
  // Some rows take longer than later ones, some are rejected.
  static Json work(const Json& row) {
    const int n = row["n"];
    if (n == 13) throw InputError("thirteen");
    double sum = 0;
    for (int i = 0; i < (n == 5 ? 200'000 : 10); ++i)
      sum += i;
    return {{"twice", 2 * n}, {"odd", sum < 0}};
  }
  RowStreamOptions options(bool keep_going) const {
    return {.file = (folder_ / "rows.jsonl").string(), .keep_going = keep_going};
  }
  testing::TemporaryFolder folder_;
};

TEST_F(RowOrder, SeveralWorkersWriteWhatOneWrites) {
  const std::string alone = output_of(options(true), work, 1);
  EXPECT_EQ(std::count(alone.begin(), alone.end(), '\n'), 600);
  EXPECT_EQ(output_of(options(true), work, 4), alone);
}

TEST_F(RowOrder, SeveralWorkersStopWhereOneStops) {
  const std::string alone = output_of(options(false), work, 1);
  EXPECT_THAT(alone, ::testing::HasSubstr("stopped: thirteen"));
  EXPECT_EQ(output_of(options(false), work, 4), alone);
}

}  // namespace
}  // namespace antisd::inline cli
