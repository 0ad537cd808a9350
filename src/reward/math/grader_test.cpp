#include "reward/math/grader.h"

#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing.h"
#include "io/json.h"

namespace antisd::inline reward {
namespace {

std::string name(const Verdict& verdict) {
  return verdict.failed() ? "undecided" : verdict.correct() ? "correct" : "wrong";
}

std::vector<Json> read_lines(const std::filesystem::path& path) {
  std::vector<Json> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    rows.push_back(parse_json(line, path.string()));
  return rows;
}

Verdict raw(std::string_view answer, std::string_view response) {
  return grade_math(answer, response, {.raw = true, .identical_shortcut = false});
}

TEST(MathGrader, AgreesWithEveryPairOfTheCorpus) {
  const std::vector<Json> pairs = read_lines(testing::fixture("reward/math_pairs.jsonl"));
  ASSERT_GT(pairs.size(), 300u);
  for (const Json& pair : pairs) {
    MathGraderOptions options;
    options.raw = pair.value("raw", false);
    for (const bool shortcut : {true, false}) {
      options.identical_shortcut = shortcut;
      const std::string answer = pair["answer"], response = pair["response"];
      const Verdict grade = grade_math(answer, response, options);
      EXPECT_EQ(name(grade), pair["correct"].get<bool>() ? "correct" : "wrong")
          << answer << "  against  " << response << "  (" << pair["why"] << ") " << grade.reason;
    }
  }
}

TEST(MathGrader, IsSymmetricOnRawPairs) {
  for (const Json& pair : read_lines(testing::fixture("reward/math_pairs.jsonl"))) {
    if (!pair.value("raw", false)) continue;
    const std::string a = pair["answer"], b = pair["response"];
    if (b.find("answer is") != std::string::npos || b.starts_with("(C) 5")) continue;
    EXPECT_EQ(name(raw(a, b)), name(raw(b, a))) << a << "  and  " << b;
  }
}

TEST(MathGrader, SaysWhatItFoundAndWhyNot) {
  const Verdict found = grade_math("1/2", "Thus \\boxed{\\frac{1}{3}}.");
  EXPECT_EQ(found.extracted, "\\frac{1}{3}");
  EXPECT_EQ(name(found), "wrong");
  const Verdict none = grade_math("1/2", "I cannot say.");
  EXPECT_EQ(name(none), "wrong");
  EXPECT_EQ(none.extracted, "");
  EXPECT_EQ(none.reason, "no answer found");
}

TEST(MathGrader, TakesTheLastNumberOnRequestOnly) {
  const std::string text = "We add 3 and 4,321.5 and then have -1,234/5 in all";
  EXPECT_EQ(name(grade_math("-1234/5", text)), "wrong");
  const Verdict grade = grade_math("-1234/5", text, {.last_number = true});
  EXPECT_EQ(name(grade), "correct");
  EXPECT_EQ(grade.extracted, "-1,234/5");
  EXPECT_EQ(grade_math("3/4", "so \\frac{3}{4} of it", {.last_number = true}).extracted,
            "\\frac{3}{4}");
}

TEST(MathGrader, AcceptsWithinTheStatedTolerance) {
  const auto graded = [](const char* gold, const char* found, double tolerance) {
    return name(grade_math(gold, found, {.relative_tolerance = tolerance, .raw = true}));
  };
  EXPECT_EQ(graded("6.63e-34", "6.626e-34", 0.01), "correct");
  EXPECT_EQ(graded("6.63e-34", "6.626e-34", 0.0001), "wrong");
  EXPECT_EQ(graded("100", "101", 0.01), "correct");
  EXPECT_EQ(graded("100", "101.01", 0.01), "wrong");
  EXPECT_EQ(graded("\\pi", "3.14", 0.01), "correct");
}

TEST(MathGrader, EndsOnHostileText) {
  const auto repeat = [](std::string_view part, int times) {
    std::string text;
    for (int k = 0; k < times; ++k)
      text += part;
    return text;
  };
  std::string powers = "2";
  for (int k = 0; k < 2000; ++k)
    powers += "^{2";
  const std::vector<std::string> hostile = {
      "9^9^9^9",
      "\\sin\\{\\}+x",
      "\\gcd{}",
      "9^{9^{9^{9^9}}}",
      "10^{10^{10^{10}}}",
      repeat("{", 1'000'000),
      repeat("(", 1'000'000),
      repeat("\\boxed{", 100'000),
      repeat("\\boxed{1}", 100'000),
      repeat("7", 1'000'000),
      repeat("7", 9'000),
      "(10^{9})!",
      "((20!)!)!",
      "5000!!",
      repeat("1/", 4'500) + "1",
      repeat("x+", 4'500) + "x",
      repeat("(x+1)", 1'900),
      repeat("\\sqrt", 1'900) + "2",
      repeat("\\sin ", 1'900) + "x",
      powers,
      repeat("|", 9'000),
      repeat("\\frac", 1'900),
      repeat("\\{", 5'000),
      repeat("\\text{", 3'000),
      repeat("-", 9'000) + "1",
      repeat("!", 9'000),
      std::string("5").append(repeat("!", 9'000)),
      repeat("<think>", 100'000),
      repeat("</think>", 100'000),
      repeat("answer is ", 100'000),
      repeat("\\begin{pmatrix}", 1'000),
      repeat("1,", 4'500) + "1",
      fmt::format("\\{{{}1\\}}", repeat("\\pi+1,", 1'000)),
      repeat("\\pm 1", 1'900),
      "\\binom{10^9}{5 \\cdot 10^8}",
      "1e999999999",
      "1e-99999999",
      "2^{-10^{15}}",
      "e^{e^{e^{e^{10}}}}",
      repeat("\\sin(\\cos(", 60) + "1" + repeat("))", 60),
      "1234567^{1234567}",
      repeat("$", 100'000),
      fmt::format("0.\\overline{{{}}}", repeat("1234567", 1'000)),
      std::string("\0\xff\xfe\\", 4),
      repeat("é", 5'000),
      repeat("x_{", 3'000),
      repeat("a(", 5'000),
      fmt::format("x^{{{}2}}", repeat("2+", 4'000)),
      "\\sqrt[10^9]{2}",
      "(x+y+z+w+a+b+c+d)^{100}",
      "(1+x)^{1000000}",
      repeat("'", 9'000),
      std::string("x").append(repeat("'", 9'000))};
  for (const std::string& text : hostile)
    for (const std::string& other :
         {std::string("5"), std::string("x^2+1"), std::string("\\{1,2,\\pi\\}"), text}) {
      for (const bool is_raw : {true, false}) {
        const MathGraderOptions options{.raw = is_raw, .identical_shortcut = false};
        // The test is that each of them ends; the benchmark measures how fast.
        for (const Verdict& grade :
             {grade_math(text, other, options), grade_math(other, text, options),
              grade_math(other, fmt::format("\\boxed{{{}}}", text), options)})
          EXPECT_EQ(grade.failed(), !grade.reason.empty() && grade.reason != "no answer found")
              << text.substr(0, 60) << ": " << grade.reason;
      }
    }
}

TEST(MathGrader, UndecidedCarriesAReason) {
  const Verdict tower = grade_math("5", "\\boxed{9^{9^{9^{9}}}}");
  EXPECT_EQ(name(tower), "undecided");
  EXPECT_NE(tower.reason, "");
  EXPECT_EQ(name(grade_math("9^{9^{9^{9}}}", "\\boxed{9^{9^{9^{9}}}}")), "correct");
}

TEST(MathGrader, IsThreadSafe) {
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &right] {
      for (int k = 0; k < 50; ++k)
        right[t] += grade_math("\\sqrt{8}+\\sin 1", "\\boxed{\\sin 1 + 2\\sqrt{2}}").correct();
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_THAT(right, ::testing::Each(50));
}

}  // namespace
}  // namespace antisd::inline reward
