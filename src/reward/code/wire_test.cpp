// What the graders read from processes that run untrusted code.
#include <gmock/gmock.h>

#include "core/testing.h"
#include "reward/code/run.h"

namespace antisd::inline reward {
namespace {

TestRun results_of(std::string text) {
  TestRun run;
  read_results(text, run);
  return run;
}

TEST(Wire, ResultsLineByLine) {
  TestRun run;
  std::string buffer = "p\nf \"failed: 1 \\u2260 2\"\np";
  read_results(buffer, run);
  EXPECT_EQ(buffer, "p") << "a line without its end waits";
  EXPECT_EQ(run.results.size(), 2u);
  EXPECT_EQ(run.results[1].reason, "failed: 1 ≠ 2");
  EXPECT_FALSE(run.complete);
  buffer += "\nend\n";
  read_results(buffer, run);
  EXPECT_TRUE(run.complete);
  EXPECT_EQ(run.results.size(), 3u);
  EXPECT_EQ(results_of("x \"the tests do not parse\"\n").broken, "the tests do not parse");
}

// The program chooses the words of its errors; Python writes half of a surrogate pair as \ud800,
// which is invalid. The failure still counts.
TEST(Wire, AReasonThatIsNoTextIsStillAFailure) {
  for (const char* line :
       {"f \"\\ud800\"\n", "f \"\xff\"\n", "f 12\n", "f {\"a\":1}\n", "f \"cut\n", "f ?\n"}) {
    const TestRun run = results_of(line);
    ASSERT_EQ(run.results.size(), 1u) << line;
    EXPECT_FALSE(run.results[0].passed) << line;
    EXPECT_NE(run.results[0].reason, "") << line;
  }
}

TEST(Wire, MessagesOfTheInterpreter) {
  EXPECT_EQ(read_zygote_message(R"({"ended": 12, "status": 9, "cpu": 0.5})")["status"], 9);
  EXPECT_EQ(read_zygote_message(R"({"started": [12, 13]})")["started"].size(), 2u);
  for (const char* text :
       {"", "x", "[]", "{}", "null", R"({"ended": 12})",
        R"({"ended": "12", "status": 9, "cpu": 0})",
        R"({"ended": 99999999999, "status": 9, "cpu": 0})", R"({"started": null})",
        R"({"started": ["a"]})", R"({"failed": 3})", R"({"time": "soon"})", R"({"unknown": 1})"})
    EXPECT_THAT(testing::error_of([&] { read_zygote_message(text); }),
                ::testing::HasSubstr("invalid message"))
        << text;
}

}  // namespace
}  // namespace antisd::inline reward
