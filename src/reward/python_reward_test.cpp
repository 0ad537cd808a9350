#include "reward/python_reward.h"

#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include "core/testing.h"
#include "reward/grader.h"

namespace antisd::inline reward {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Functions as users have them: both signatures, and what may go wrong in them. All is bounded.
constexpr const char* kFunctions = R"py(
import asyncio, ctypes, json, math, os, sys, time

def words(completions, **kwargs):
    return [float(len(c.split())) for c in completions]

def process(completions, **kwargs):
    return [os.getpid()] * len(completions)

def told(completions, **kwargs):
    """Everything that it was given, by the way of an exception's text."""
    raise ValueError(json.dumps({name: value for name, value in sorted(kwargs.items())}))

def some(completions, answer):
    return [None if c == "?" else float(c == a) for c, a in zip(completions, answer)]

def odd(completions, **kwargs):
    return [{"nan": math.nan, "inf": -math.inf, "text": "1", "bool": True, "whole": 3,
             "list": [1], "none": None}[c] for c in completions]

def chat(prompts, completions, **kwargs):
    return [float(p[-1]["content"] == "2 + 2" and c[0]["role"] == "assistant"
                  and c[0]["content"] == "4") for p, c in zip(prompts, completions)]

def lengths(completion_ids, **kwargs):
    return [-float(len(ids)) for ids in completion_ids]

async def slow(completions, **kwargs):
    async def one(c):
        await asyncio.sleep(0.01)
        return float(c)
    return await asyncio.gather(*[one(c) for c in completions])

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    if solution_str == "dict":
        return {"score": 0.25, "acc": False, "reason": "in part"}
    if solution_str == "empty":
        return {}
    if solution_str == "info":
        raise KeyError(json.dumps([data_source, ground_truth, extra_info]))
    return solution_str == ground_truth

def leveled(solution_str, level):
    return level

def needs(completions, nowhere):
    return [0.0] * len(completions)

def strange(text, gold):
    return 0.0

def behave(completions, **kwargs):
    do = completions[0]
    if do == "raise": raise RuntimeError("bad\nresponse \ud800")
    if do == "exit": sys.exit(3)
    if do == "crash": os._exit(3)
    if do == "segv": os.kill(os.getpid(), 11)
    if do == "hang": time.sleep(60)
    if do == "print":
        for _ in range(32): print("x" * (1 << 16))
        os.write(1, b'{"id": 1, "rewards": [9], "reasons": [""]}\n')
    if do == "memory":
        kept = []
        for _ in range(16): kept.append(bytearray(16 << 20))  # 256 MiB, if nothing ended it
    if do == "short": return []
    if do == "long": return (0.5 for _ in iter(int, 1))
    if do == "number": return 1.0
    if do == "text": return "1" * len(completions)
    if do == "fork" and os.fork() == 0: return [7.0] * len(completions)
    if do == "close": os.closerange(3, 20)
    return [1.0] * len(completions)

number = 4
)py";

Json row_with(const std::string& response, Json columns = Json::object()) {
  return {{"prompt", "2 + 2"}, {"response", response}, {"answer", "4"},
          {"source", "sums"},  {"ids", {5, 6, 7}},     {"columns", std::move(columns)}};
}

class PythonRewardTest : public ::testing::Test {
 protected:
  PythonRewardTest() { write("reward.py", kFunctions); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  PythonRewardOptions with(const std::string& function) const {
    return {.function = (folder_ / "reward.py").string() + ":" + function,
            .timeout_s = 30,
            .workers = 1};
  }
  static std::vector<Verdict> grade(PythonReward& reward, const std::vector<std::string>& texts,
                                    const Json& columns = Json::object()) {
    std::vector<Json> rows;
    for (const std::string& text : texts)
      rows.push_back(row_with(text, columns));
    return reward.grade(rows);
  }
  // The rewards of a function; -99 where there is none.
  std::vector<double> rewards(const std::string& function, const std::vector<std::string>& texts,
                              const Json& columns = Json::object()) {
    PythonReward reward(with(function));
    std::vector<double> values;
    for (const Verdict& verdict : grade(reward, texts, columns))
      values.push_back(verdict.reward.value_or(-99));
    return values;
  }
  testing::TemporaryFolder folder_;
};

TEST_F(PythonRewardTest, CallsTrlsSignatureWithABatch) {
  PythonReward reward(with("words"));
  EXPECT_TRUE(reward.takes_batches());
  const std::vector<Verdict> verdicts = grade(reward, {"one", "one two", ""});
  EXPECT_EQ(verdicts[0].reward, 1.0);
  EXPECT_EQ(verdicts[1].reward, 2.0);
  EXPECT_EQ(verdicts[2].reward, 0.0);
  // One call, so one process, which also serves the next.
  PythonReward who(with("process"));
  const std::vector<Verdict> first = grade(who, {"", "", ""}), second = grade(who, {""});
  EXPECT_EQ(first[0].reward, first[2].reward);
  EXPECT_EQ(first[0].reward, second[0].reward);
}

TEST_F(PythonRewardTest, EveryColumnIsAList) {
  PythonReward reward(with("told"));
  const Verdict verdict =
      grade(reward, {"a", "b"}, {{"answer", 4}, {"level", {1, 2}}, {"completions", "mine"}})[0];
  EXPECT_THAT(verdict.reason,
              HasSubstr(R"({"answer": [4, 4], "completion_ids": [[5, 6, 7], [5, 6, 7]], )"
                        R"("level": [[1, 2], [1, 2]], "prompts": ["2 + 2", "2 + 2"]})"));
  EXPECT_THAT(verdict.reason, HasSubstr("ValueError"));
  EXPECT_THAT(rewards("some", {"4", "5", "?"}, {{"answer", "4"}, {"other", 1}}),
              ElementsAre(1.0, 0.0, -99.0));
  EXPECT_THAT(rewards("lengths", {"", ""}), ElementsAre(-3.0, -3.0));
}

TEST_F(PythonRewardTest, ChatsAreMessages) {
  PythonReward reward(with("chat"));
  Json row = row_with("4");
  row["prompt"] = Json::array({{{"role", "user"}, {"content", "2 + 2"}}});
  EXPECT_EQ(reward.grade({&row, 1})[0].reward, 1.0);
}

TEST_F(PythonRewardTest, AsyncFunctionsAreAwaited) {
  PythonReward reward(with("slow"));
  for (int call = 0; call < 2; ++call)
    EXPECT_EQ(grade(reward, {"0.5", "-2"})[1].reward, -2.0);
}

TEST_F(PythonRewardTest, WhatIsNoNumberIsNoGrade) {
  EXPECT_THAT(rewards("odd", {"nan", "bool", "inf", "text", "whole", "list", "none"}),
              ElementsAre(-99.0, 1.0, -99.0, -99.0, 3.0, -99.0, -99.0));
  PythonReward reward(with("odd"));
  const std::vector<Verdict> verdicts = grade(reward, {"nan", "text", "none"});
  EXPECT_THAT(verdicts[0].reason, HasSubstr("not finite: nan"));
  EXPECT_THAT(verdicts[1].reason, HasSubstr("not a number: '1'"));
  EXPECT_THAT(verdicts[2].reason, HasSubstr("gave no reward"));
}

TEST_F(PythonRewardTest, CallsVerlsSignatureForEachRow) {
  PythonReward reward(with("compute_score"));
  EXPECT_FALSE(reward.takes_batches());
  const std::vector<Verdict> verdicts = grade(reward, {"4", "5", "dict", "empty"});
  EXPECT_EQ(verdicts[0].reward, 1.0);
  EXPECT_EQ(verdicts[1].reward, 0.0);
  EXPECT_EQ(verdicts[2].reward, 0.25);
  EXPECT_EQ(verdicts[2].reason, "in part");
  EXPECT_EQ(verdicts[3].reward, std::nullopt);
  EXPECT_THAT(verdicts[3].reason, HasSubstr("no 'score'"));
  // Without verl's columns: the problem's source and answer, and every column.
  EXPECT_THAT(grade(reward, {"info"}, {{"level", 3}})[0].reason,
              HasSubstr(R"(["sums", "4", {"level": 3}])"));
  const Json verl = {{"data_source", "openai/gsm8k"},
                     {"reward_model", {{"style", "rule"}, {"ground_truth", 12}}},
                     {"extra_info", {{"index", 7}}}};
  EXPECT_THAT(grade(reward, {"info"}, verl)[0].reason,
              HasSubstr(R"(["openai/gsm8k", 12, {"index": 7}])"));
  EXPECT_THAT(rewards("leveled", {""}, {{"level", 3}}), ElementsAre(3.0));
}

// In the manner of the functions that people have: TRL's with columns, chats and several tasks, and
// verl's for GSM8K.
TEST_F(PythonRewardTest, RunsFunctionsAsTheyAreWrittenForOthers) {
  write("theirs.py", R"py(
import re

def different_letters(completions, **kwargs):
    return [float(len(set(text))) for text in completions]

def boxed_equals(completions, ground_truth, **kwargs):
    found = [re.search(r"\\boxed\{(.*?)\}", text) for text in completions]
    return [1.0 if match and match.group(1) == gold else 0.0
            for match, gold in zip(found, ground_truth)]

def maths_alone(prompts, completions, task, **kwargs):
    return [float("=" in text) if kind == "math" else None
            for text, kind in zip(completions, task)]

def thinks_first(completions, **kwargs):
    contents = [completion[0]["content"] for completion in completions]
    return [1.0 if re.match(r"^<think>.*?</think>\s*<answer>.*?</answer>$", text, re.DOTALL) else 0.0
            for text in contents]

def gsm8k(solution_str, ground_truth, method="strict", format_score=0.0, score=1.0, **kwargs):
    found = re.findall(r"#### (-?[0-9.,]+)", solution_str)
    if not found:
        return 0
    return score if found[-1].replace(",", "") == ground_truth else format_score
)py");
  const auto values = [&](const std::string& name, const std::vector<Json>& rows) {
    PythonReward reward({.function = (folder_ / "theirs.py").string() + ":" + name, .workers = 1});
    std::vector<double> found;
    for (const Verdict& verdict : reward.grade(rows))
      found.push_back(verdict.reward.value_or(-99));
    return found;
  };
  EXPECT_THAT(values("different_letters", {row_with("abba"), row_with("")}), ElementsAre(2.0, 0.0));
  EXPECT_THAT(values("boxed_equals", {row_with("so \\boxed{4}.", {{"ground_truth", "4"}}),
                                      row_with("\\boxed{5}", {{"ground_truth", "4"}}),
                                      row_with("4", {{"ground_truth", "4"}})}),
              ElementsAre(1.0, 0.0, 0.0));
  EXPECT_THAT(values("maths_alone", {row_with("1 = 1", {{"task", "math"}}),
                                     row_with("1 = 1", {{"task", "code"}})}),
              ElementsAre(1.0, -99.0));
  std::vector<Json> chats = {row_with("<think>a\nb</think>\n<answer>4</answer>"), row_with("4")};
  for (Json& chat : chats)
    chat["prompt"] = Json::array({{{"role", "user"}, {"content", "2 + 2"}}});
  EXPECT_THAT(values("thinks_first", chats), ElementsAre(1.0, 0.0));
  const Json row = {{"data_source", "openai/gsm8k"},
                    {"reward_model", {{"style", "rule"}, {"ground_truth", "1200"}}}};
  EXPECT_THAT(values("gsm8k", {row_with("so #### 1,200", row), row_with("#### 5", row),
                               row_with("1200", row)}),
              ElementsAre(1.0, 0.0, 0.0));
}

TEST_F(PythonRewardTest, ACallThatGoesWrongCostsItsOwnBatch) {
  PythonRewardOptions options = with("behave");
  options.timeout_s = 3;
  options.memory_mb = 128;
  PythonReward reward(options);
  const std::pair<const char*, const char*> failures[] = {
      {"raise", "RuntimeError: bad response ? (reward.py, line "},
      {"exit", "SystemExit: 3"},
      {"crash", "ended with status 3"},
      {"segv", "killed by signal 11"},
      {"hang", "does not answer in time"},
      {"memory", "MemoryError"},
      {"short", "returned 0 rewards for 2 completions"},
      {"long", "returned more rewards for 2 completions"},
      {"number", "returned 1.0, not a list"},
      {"text", "not a list"}};
  for (const auto& [what, reason] : failures) {
    for (const Verdict& verdict : grade(reward, {what, "good"})) {
      EXPECT_EQ(verdict.reward, std::nullopt) << what;
      EXPECT_THAT(verdict.reason, HasSubstr(reason));
    }
    const std::vector<Verdict> next = grade(reward, {"good", "good"});
    EXPECT_EQ(next[1].reward, 1.0) << "after " << what << ": " << next[1].reason;
  }
  // What it prints and leaves behind is not taken for an answer.
  for (const char* what : {"print", "fork"}) {
    EXPECT_EQ(grade(reward, {what, "good"})[0].reward, 1.0) << what;
    EXPECT_EQ(grade(reward, {"good"})[0].reward, 1.0) << what;
  }
  EXPECT_EQ(grade(reward, {"close", "good"})[0].reward, std::nullopt);
  EXPECT_EQ(grade(reward, {"good"})[0].reward, 1.0);
}

TEST_F(PythonRewardTest, AWorkerThatWasKilledWhileIdleCostsOneBatch) {
  PythonReward reward(with("process"));
  const auto process = static_cast<pid_t>(*grade(reward, {""})[0].reward);
  kill(process, SIGKILL);
  EXPECT_THAT(grade(reward, {""})[0].reason, HasSubstr("signal 9"));
  EXPECT_NE(static_cast<pid_t>(grade(reward, {""})[0].reward.value_or(process)), process);
}

TEST_F(PythonRewardTest, WhatCannotBeLoadedIsRefused) {
  write("broken.py", "import nothing_of_this_name\n");
  write("syntax.py", "def score(:\n");
  write("leaves.py", "import sys\nsys.exit(4)\n");
  write("dies.py", "import os\nos.write(2, b'no luck')\nos._exit(5)\n");
  write("hangs.py", "import time\ntime.sleep(60)\n");
  write("neighbour.py", "def score(completions):\n    return [2.0] * len(completions)\n");
  write("imports.py", "from neighbour import score\n");
  const auto refused = [&](const std::string& function, const std::string& python = "",
                           double start_s = 60) {
    return testing::error_of([&] {
      PythonReward(
          {.function = (folder_ / function).string(), .python = python, .start_s = start_s});
    });
  };
  EXPECT_THAT(refused("gone.py:score"), AllOf(HasSubstr("reward.function"), HasSubstr("gone.py")));
  EXPECT_THAT(refused("reward.py"), HasSubstr("FILE.py:FUNCTION"));
  EXPECT_THAT(refused("reward.py:scor"),
              AllOf(HasSubstr("no function 'scor'"), HasSubstr("words")));
  EXPECT_THAT(refused("reward.py:number"), HasSubstr("not a function"));
  EXPECT_THAT(refused("reward.py:strange"), AllOf(HasSubstr("(text, gold)"), HasSubstr("verl")));
  EXPECT_THAT(refused("broken.py:score"),
              HasSubstr("ModuleNotFoundError: No module named 'nothing_of_this_name' (broken.py, "
                        "line 1)"));
  EXPECT_THAT(refused("syntax.py:score"), HasSubstr("SyntaxError"));
  EXPECT_THAT(refused("leaves.py:score"), HasSubstr("SystemExit: 4"));
  EXPECT_THAT(refused("dies.py:score"), AllOf(HasSubstr("status 5"), HasSubstr("no luck")));
  EXPECT_THAT(refused("hangs.py:score", "", 1), HasSubstr("within 1 seconds"));
  EXPECT_THAT(refused("reward.py:words", "/nonexistent/python"),
              AllOf(HasSubstr("reward.python"), HasSubstr("/nonexistent/python cannot be run")));
  PythonReward beside({.function = (folder_ / "imports.py").string() + ":score", .workers = 1});
  EXPECT_EQ(grade(beside, {""})[0].reward, 2.0);
}

TEST_F(PythonRewardTest, ProbeTellsWhatNoCallCanMend) {
  const auto problem_of = [&](const std::string& function, const std::string& response) {
    PythonReward reward(with(function));
    return testing::error_of([&] { reward.probe(row_with(response, {{"answer", "4"}})); });
  };
  EXPECT_THAT(problem_of("needs", ""), AllOf(HasSubstr("'nowhere'"), HasSubstr("has: answer")));
  EXPECT_THAT(problem_of("behave", "crash"),
              AllOf(HasSubstr("status 3"), HasSubstr("antisd grade")));
  EXPECT_THAT(problem_of("behave", "short"), HasSubstr("0 rewards for 1 completions"));
  PythonReward reward(with("behave"));
  EXPECT_NO_THROW(reward.probe(row_with("")));
  EXPECT_THAT(reward.take_warnings(), IsEmpty());
  EXPECT_NO_THROW(reward.probe(row_with("raise"))) << "it may be about an empty response alone";
  EXPECT_THAT(reward.take_warnings(), ElementsAre(HasSubstr("RuntimeError: bad response")));
  EXPECT_THAT(reward.take_warnings(), IsEmpty());
}

TEST_F(PythonRewardTest, ManyThreadsShareThePool) {
  PythonRewardOptions options = with("words");
  options.workers = 2;
  PythonReward reward(options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        std::string text;
        for (int k = 0; k < i; ++k)
          text += "w ";
        const std::vector<Verdict> verdicts = grade(reward, {text, "one"});
        EXPECT_EQ(verdicts[0].reward, i) << verdicts[0].reason;
        EXPECT_EQ(verdicts[1].reward, 1.0);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
}

TEST_F(PythonRewardTest, TheGraderGivesTheRowAsTheFileHasIt) {
  const std::unique_ptr<Grader> grader = make_grader(
      {.kind = "python", .function = with("told").function, .timeout_s = 30, .workers = 1});
  EXPECT_TRUE(grader->grades_groups());
  Json row = {{"question", "2 + 2"}, {"answer", "so\n#### 4"}, {"level", 2}};
  const Problem problem =
      ProblemParser({{"problem", "question"}}, true, /*keep_row=*/true).parse(row, "f:1", "f", 1);
  Response response;
  response.ids = {1, 2};
  response.text = "four";
  const Verdict verdict = grader->grade(grade_request(problem, response));
  EXPECT_EQ(problem.answer, "4");
  EXPECT_THAT(verdict.reason,
              HasSubstr(R"({"answer": ["so\n#### 4"], "completion_ids": [[1, 2]], "level": [2], )"
                        R"("problem": ["2 + 2"], "prompts": ["2 + 2"], "question": ["2 + 2"]})"));
  EXPECT_EQ(verdict.extracted, "four");
}

}  // namespace
}  // namespace antisd::inline reward
