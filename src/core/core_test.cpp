#include <gmock/gmock.h>

#include "core/check.h"
#include "core/error.h"

namespace antisd::inline core {
namespace {

TEST(Error, SaysWhereWhatAndRemedyInOneLine) {
  const InputError error("no such key", {.where = "run.toml:3", .remedy = "did you mean 'steps'?"});
  EXPECT_EQ(error.message(), "run.toml:3: no such key; did you mean 'steps'?");
  EXPECT_EQ(error.exit_status(), 2);
  EXPECT_EQ(RunError("disk full").message(), "disk full");
  EXPECT_EQ(RunError("disk full").exit_status(), 1);
}

TEST(Check, ShowsBothValues) {
  const int rows = 3;
  try {
    ANTISD_CHECK_EQ(rows, 4);
    FAIL() << "3 == 4 passed";
  } catch (const CheckFailure& failure) {
    EXPECT_THAT(failure.what(), ::testing::MatchesRegex(R"(core_test.cpp:[0-9]+: does not hold: )"
                                                        R"(rows == 4 \(here: 3 and 4\))"));
  }
  EXPECT_NO_THROW(ANTISD_CHECK(rows == 3));
}

}  // namespace
}  // namespace antisd::inline core
