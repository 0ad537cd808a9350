#include <algorithm>
#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "bench/benchmarks.h"
#include "bench/options.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "io/jsonl.h"
#include "reward/math/grader.h"

namespace antisd::bench {
namespace {

std::vector<std::string> read_answers(const std::string& path) {
  if (path.empty())
    return {"\\frac{1}{2}",         "12",          "2\\sqrt{3}",    "x^2+2x+1",
            "(3, \\frac{\\pi}{2})", "\\{1,2,3\\}", "(-\\infty, 4]", "30^\\circ"};
  std::vector<std::string> answers;
  JsonlReader reader(path);
  for (Json row; reader.next(row);)
    answers.push_back(row.at("answer").get<std::string>());
  return answers;
}

// tools/bench_grade_peer.py grades the same texts.
std::string sentence(const std::string& answer) {
  return "We simplify step by step and check each case. Putting everything together, we conclude "
         "that the final "
         "answer is $\\boxed{" +
         answer + "}$.";
}

// A rollout of about 8,000 tokens: 32 KB of reasoning before the answer.
std::string rollout(const std::string& answer) {
  static constexpr std::string_view kThought =
      "Let me compute $a_{n+1} = 2 a_n + 3$ for n = 17, which gives (5 + 12) / 2 = 8.5. Wait, "
      "maybe the answer could "
      "be different; check {x : x > 3} again. ";
  std::string text = "<think>\n";
  while (text.size() < 32'000)
    text += kThought;
  return text + "</think>\n" + sentence(answer);
}

}  // namespace

int run_grade(const Arguments& arguments) {
  std::string path;
  bool json = false;
  CLI::App app("math grades per second, and the time for a step's long rollouts",
               "antisd-bench grade");
  app.add_option("--answers", path, "JSONL with \"answer\"; without it a few built-in ones");
  app.add_flag("--json", json, "one line of JSON");
  if (const auto status = parse(app, arguments)) return *status;
  const std::vector<std::string> answers = read_answers(path);
  if (answers.empty())
    throw InputError("no answers", {.where = path, .remedy = "give rows with \"answer\""});

  // Without the shortcut for identical text, so that every answer is parsed and compared.
  const MathGraderOptions options{.identical_shortcut = false};
  std::vector<std::string> texts;
  for (const std::string& answer : answers)
    texts.push_back(sentence(answer));
  std::size_t graded = 0, correct = 0;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    Stopwatch watch;
    for (std::size_t k = 0; k < answers.size(); ++k, ++graded)
      correct += grade_math(answers[k], texts[k], options).correct();
    best = std::max(best, static_cast<double>(answers.size()) / watch.lap());
  }

  constexpr int kRollouts = 1000, kThreads = 2;
  std::vector<std::string> rollouts;
  for (int k = 0; k < kRollouts; ++k)
    rollouts.push_back(rollout(answers[k % answers.size()]));
  std::atomic<int> next = 0;
  Stopwatch watch;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int k = next++; k < kRollouts; k = next++)
        grade_math(answers[k % answers.size()], rollouts[k], options);
    });
  for (std::thread& thread : threads)
    thread.join();
  const double rollout_seconds = watch.lap();

  const double share = static_cast<double>(correct) / static_cast<double>(graded);
  if (json) {
    Json row;
    row["bench"] = "grade";
    row["answers"] = answers.size();
    row["grades_per_s_one_core"] = best;
    row["correct"] = share;
    row["rollouts"] = kRollouts;
    row["rollout_bytes"] = rollouts[0].size();
    row["rollouts_s_two_threads"] = rollout_seconds;
    fmt::print("{}\n", to_json_line(row));
  } else {
    fmt::print("{} answers in sentences: {:.0f} grades/s on one core, {:.2f} % correct\n",
               answers.size(), best, 100 * share);
    fmt::print("{} rollouts of {} bytes: {:.3f} s on {} threads\n", kRollouts, rollouts[0].size(),
               rollout_seconds, kThreads);
  }
  return 0;
}

}  // namespace antisd::bench
