// `train` with rewards in Python and with sums of rewards.

#include <set>

#include <gmock/gmock.h>

#include "cli/weights/train_testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Outcome;
using ::testing::SizeIs;

// Reward functions in the manner of TRL's and verl's documentation. The model knows few words.
constexpr const char* kRewards = R"py(
import re, os

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    """verl's: the rule of the fixture's reward program."""
    words = solution_str.split()
    score = None if words[:1] == ["lose"] else float("win" in words)
    return {"score": score, "reason": "said so", "acc": bool(score)}

def said_win(prompts, completions, answer, **kwargs):
    """TRL's: more than two values, none of them 1."""
    assert len(prompts) == len(completions) == len(answer)
    return [0.6 if "win" in c.split() else -0.5 for c in completions]

def format_reward_func(completions, **kwargs):
    pattern = r"^(?!lose)"
    return [1.0 if re.match(pattern, c) else 0.0 for c in completions]

def among_peers(completions, completion_ids, **kwargs):
    """Needs the whole batch."""
    longest = max(len(ids) for ids in completion_ids)
    return [len(ids) / longest for ids in completion_ids]

def fragile(completions, **kwargs):
    print("about to grade", completions)
    if any("win" in c.split() for c in completions):
        os._exit(9)
    return [float(len(c)) for c in completions]
)py";

class TrainPython : public testing::TrainTest {
 protected:
  TrainPython() : TrainTest({"train.micro_batches=2"}) { write("functions.py", kRewards); }

  std::string with(const std::string& function) const {
    return fmt::format("reward.kind=python reward.function={}:{} ", path("functions.py"), function);
  }
  std::vector<Json> rollouts(const std::string& run) const {
    std::vector<Json> rows;
    for (std::size_t step = 1; step <= metrics(run).size(); ++step) {
      JsonlReader reader(folder_ / run / fmt::format("rollouts/step-{:06}.jsonl", step));
      for (Json row; reader.next(row);)
        rows.push_back(row);
    }
    return rows;
  }
  static bool says_win(const Json& row) {
    std::istringstream words(row["text"].get<std::string>());
    for (std::string word; words >> word;)
      if (word == "win") return true;
    return false;
  }
};

// The same rule by the line protocol and as verl's function: the same bytes.
TEST_F(TrainPython, AFunctionGivesTheBytesOfAProgram) {
  ASSERT_EQ(train("program").status, 0);
  const Outcome function = train("function", with("compute_score"));
  ASSERT_EQ(function.status, 0) << function.err;
  EXPECT_EQ(weights("function", 6), weights("program", 6));
  EXPECT_EQ(reproducible("function"), reproducible("program"));
  EXPECT_EQ(rollouts("function"), rollouts("program"));
}

TEST_F(TrainPython, CorrectAtDecidesWhatTheTeacherIsShown) {
  const std::string settings =
      with("said_win") + "reward.truncated=-1 rollout.max_sequence_tokens=40 ";
  ASSERT_EQ(train("half", settings + "reward.correct_at=0.5").status, 0);
  ASSERT_EQ(train("never", settings).status, 0);
  std::set<double> seen;
  std::set<std::string> half, never;
  for (const Json& row : rollouts("half")) {
    const double expected = row["truncated"] == true ? -1 : says_win(row) ? 0.6 : -0.5;
    EXPECT_EQ(row["reward"], expected);
    EXPECT_EQ(row.value("correct", false), expected == 0.6);
    seen.insert(expected);
    half.insert(row["context_source"].get<std::string>());
  }
  EXPECT_THAT(seen, SizeIs(3));
  EXPECT_TRUE(half.contains("peer"));
  for (const Json& row : rollouts("never"))
    never.insert(row["context_source"].get<std::string>());
  EXPECT_FALSE(never.contains("peer"));
  const std::vector<Json> rows = metrics("half");
  double correct = 0;
  for (const Json& row : rollouts("half"))
    if (row["step"] == 1) correct += row.value("correct", false) ? 1 : 0;
  EXPECT_DOUBLE_EQ(rows[0]["reward/correct"].get<double>(), correct / 12);
  EXPECT_LT(rows[0]["critic/rewards/min"].get<double>(), 0);
  EXPECT_FALSE(metrics("never")[0].contains("reward/correct"));
}

TEST_F(TrainPython, SumsAreWhatTheirPartsSay) {
  const std::string settings =
      with("said_win") + fmt::format(
                             "reward.weight=2 reward.correct_at=0.6 rollout.max_sequence_tokens=40 "
                             "'reward.terms.form=python {0}:format_reward_func' "
                             "'reward.terms.long=length tokens 2 12' "
                             "'reward.terms.peers=python {0}:among_peers' reward.weights.form=0.25 "
                             "reward.weights.long=-0.5 ",
                             path("functions.py"));
  const Outcome outcome = train("sum", settings);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  double sum_of_form = 0, graded = 0;
  for (const Json& row : rollouts("sum")) {
    if (row["truncated"] == true) {
      EXPECT_EQ(row["reward"], 0);
      EXPECT_FALSE(row.contains("reward_parts"));
      continue;
    }
    const auto tokens = static_cast<double>(row["response_ids"].size());
    const Json& parts = row["reward_parts"];
    const double own = says_win(row) ? 0.6 : -0.5;
    const double form = row["text"].get<std::string>().starts_with("lose") ? 0 : 1;
    EXPECT_EQ(parts["grader"], own);
    EXPECT_EQ(parts["form"], form);
    EXPECT_DOUBLE_EQ(parts["long"].get<double>(), std::clamp((tokens - 2) / 10, 0.0, 1.0));
    EXPECT_DOUBLE_EQ(
        row["reward"].get<double>(),
        2 * own + 0.25 * form - 0.5 * parts["long"].get<double>() + parts["peers"].get<double>());
    EXPECT_EQ(row["correct"], own == 0.6);
    if (row["step"] != 1) continue;
    sum_of_form += form;
    ++graded;
  }
  ASSERT_GT(graded, 0);
  EXPECT_DOUBLE_EQ(metrics("sum")[0]["reward/parts/form"].get<double>(), sum_of_form / graded);
  // Several ranks grade the same groups, and its own config.toml repeats it.
  const Outcome two = train("two", settings + "--processes 2");
  ASSERT_EQ(two.status, 0) << two.err;
  EXPECT_EQ(rollouts("two"), rollouts("sum"));
  EXPECT_EQ(weights("two", 6), weights("sum", 6));
  fs::copy_file(folder_ / "sum/config.toml", folder_ / "run.toml",
                fs::copy_options::overwrite_existing);
  ASSERT_EQ(train("again").status, 0);
  EXPECT_EQ(weights("again", 6), weights("sum", 6));
}

TEST_F(TrainPython, AFunctionThatDiesCostsItsGroup) {
  const Outcome outcome =
      train("run", with("fragile") + "rollout.max_sequence_tokens=40 reward.give_up_after=6");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("could not be graded"));
  EXPECT_THAT(outcome.err, HasSubstr("reward.function ended with status 9"));
  std::map<std::pair<int, std::string>, bool> dead;  // by step and problem
  const std::vector<Json> rows = rollouts("run");
  const auto group_of = [](const Json& row) {
    return std::pair(row["step"].get<int>(), row["prompt_id"].get<std::string>());
  };
  for (const Json& row : rows)
    dead[group_of(row)] |= row["truncated"] != true && says_win(row);
  std::set<bool> seen;
  for (const Json& row : rows) {
    if (row["truncated"] == true) continue;
    EXPECT_EQ(row["reward"].is_null(), dead[group_of(row)]);
    seen.insert(row["reward"].is_null());
  }
  EXPECT_THAT(seen, SizeIs(2)) << "some died, some did not";
}

TEST_F(TrainPython, WhatCannotGradeIsFoundBeforeTheFirstStep) {
  write("broken.py", "import nothing_of_this_name\n");
  write("needs.py", "def score(completions, level): return [0.0] * len(completions)\n");
  const auto of = [&](const std::string& function) {
    return "reward.kind=python reward.function=" + path(function);
  };
  const struct {
    std::string settings, problem;
  } cases[] = {
      {of("gone.py:score"), "there is no file"},
      {of("functions.py:score"), "no function 'score'"},
      {of("broken.py:score"), "No module named 'nothing_of_this_name'"},
      {of("needs.py:score"), "'level'"},
      {with("said_win") + "reward.python=/nonexistent/python", "cannot be run"},
      {"'reward.terms.form=format (a'", "reward.terms.form"},
      {"'reward.terms.form=python " + path("gone.py:score") + "'", "reward.terms.form"},
  };
  for (const auto& one : cases)
    for (const char* mode : {"", "--dry-run "}) {
      // Most is found by what both do first; the column by the question to the function.
      if (*mode == '\0' && one.problem != cases[0].problem && one.problem != "'level'") continue;
      const Outcome outcome = train("broken", mode + one.settings);
      EXPECT_EQ(outcome.status, 2) << one.settings << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr(one.problem));
      EXPECT_THAT(metrics("broken"), IsEmpty());
    }
  const Outcome dry = train("dry", "--dry-run " + with("said_win") +
                                       "'reward.terms.form=format .*' reward.weights.form=0.5");
  EXPECT_EQ(dry.status, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("functions.py:said_win (it answers) + 0.5 x form (format .*)"));
}

// The grade of a group is the same whoever asks, so a resumed run does not change.
TEST_F(TrainPython, ResumingChangesNotAByte) {
  const std::string settings = with("among_peers") + "rollout.max_sequence_tokens=40 ";
  ASSERT_EQ(train("whole", settings).status, 0);
  ASSERT_EQ(train("parts", settings + "train.steps=3").status, 0);
  ASSERT_EQ(train("parts", settings + "--resume").status, 0);
  EXPECT_EQ(weights("parts", 6), weights("whole", 6));
  const Outcome changed = train("parts", with("said_win") + "--resume train.steps=7");
  EXPECT_EQ(changed.status, 2);
  EXPECT_THAT(changed.err, HasSubstr("reward.function"));
}

}  // namespace
}  // namespace antisd::inline cli
