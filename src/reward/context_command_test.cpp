#include "reward/context_command.h"

#include <fstream>

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/testing.h"

namespace antisd::inline reward {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ContextCommandTest : public ::testing::Test {
 protected:
  // A program in Python whose `reply` sets `answer` from `row`.
  std::string program(const std::string& reply) const {
    std::ofstream(folder_ / "hints.py") << "import json, os, sys, time\n"
                                           "for line in iter(sys.stdin.readline, ''):\n"
                                           "    row = json.loads(line)\n    "
                                        << reply << "\n"
                                        << "    print(json.dumps(answer), flush=True)\n";
    return "python3 -IS " + (folder_ / "hints.py").string();
  }

  static std::vector<Json> requests(int count) {
    std::vector<Json> all;
    for (int i = 0; i < count; ++i)
      all.push_back({{"problem", "p"}, {"response", std::to_string(i)}});
    return all;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(ContextCommandTest, AnswersComeInTheOrderOfTheRequests) {
  ContextCommand command({.command = program("answer = {'id': row['id'], 'context': 'not ' + "
                                             "row['response']}; print('log', flush=True)"),
                          .workers = 3});
  const std::vector<ContextAnswer> answers = command.ask(requests(20));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].text, "not " + std::to_string(i));
    EXPECT_EQ(answers[i].reason, "");
  }
}

// What goes wrong with one response costs its context alone.
TEST_F(ContextCommandTest, CrashHangAndNonsenseCostOneContext) {
  ContextCommand command(
      {.command = program("answer = {'context': 'fine'}\n"
                          "    if row['response'] == '1': os._exit(3)\n"
                          "    if row['response'] == '2': time.sleep(20)\n"
                          "    if row['response'] == '3': answer = {'contxt': ''}\n"
                          "    if row['response'] == '4': answer = {'context': 7}\n"
                          "    if row['response'] == '5': answer = {'context': None}"),
       .timeout_s = 2,
       .workers = 2});
  const std::vector<ContextAnswer> answers = command.ask(requests(8));
  EXPECT_EQ(answers[1].reason, "context.command ended with status 3");
  EXPECT_EQ(answers[2].reason, "context.command does not answer in time");
  EXPECT_THAT(answers[3].reason, HasSubstr("something other than an answer"));
  EXPECT_THAT(answers[4].reason, HasSubstr("not text"));
  EXPECT_EQ(answers[5].reason, "");
  EXPECT_EQ(answers[5].text, "");
  for (const std::size_t i : {0u, 6u, 7u})
    EXPECT_EQ(answers[i].text, "fine");
}

TEST_F(ContextCommandTest, ABrokenProgramIsToldBeforeTheRun) {
  ContextCommand command({.command = "echo no such hint >&2; exit 4", .workers = 1});
  EXPECT_THAT(testing::error_of([&] { command.probe(requests(1)[0]); }),
              AllOf(HasSubstr("context.command ended with status 4"), HasSubstr("no such hint"),
                    HasSubstr("try it by hand")));
}

TEST_F(ContextCommandTest, TheRequestHasTheVerdictAndTheRowsColumns) {
  Problem problem;
  problem.id = "p1";
  problem.problem = "1+1?";
  problem.answer = "2";
  problem.row = {{"level", 3}, {"answer", "other"}};
  Response response;
  response.text = "3";
  response.verdict = {.reward = 0.25, .reason = "no", .passed = 1, .total = 4};
  EXPECT_EQ(context_request(problem, response), Json::parse(R"({"problem": "1+1?", "answer": "2",
      "response": "3", "reward": 0.25, "correct": false, "reason": "no", "row_id": "p1",
      "passed": 1, "total": 4, "level": 3})"));
}

}  // namespace
}  // namespace antisd::inline reward
