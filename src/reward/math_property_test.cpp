// Properties over generated answers: a value equals itself however it is written, and differs once a
// digit changes. The generator is seeded, so a failure repeats.
#include <random>

#include <gtest/gtest.h>

#include "reward/math_grader.h"

namespace antisd {
namespace {

class Generator {
 public:
  long number(long low, long high) { return std::uniform_int_distribution<long>(low, high)(random_); }
  template <typename List>
  std::string pick(const List& list) { return list[number(0, static_cast<long>(std::size(list)) - 1)]; }

  std::string fraction(long above, long below) {
    const std::string a = std::to_string(above), b = std::to_string(below);
    std::vector<std::string> spellings = {"\\frac{" + a + "}{" + b + "}", "\\dfrac{" + a + "}{" + b + "}", a + "/" + b,
                                          "{" + a + " \\over " + b + "}", "\\frac{" + std::to_string(3 * above) + "}{" + std::to_string(3 * below) + "}"};
    if (above > 0 && above < 10 && below < 10) spellings.push_back("\\frac" + a + b);
    return pick(spellings);
  }

  // One of the spellings of the same expression; `seed` fixes which expression.
  std::string expression(int kind, long a, long b, long c) {
    const std::string A = std::to_string(a), B = std::to_string(b), C = std::to_string(c);
    switch (kind) {
      case 0: return pick(std::vector{fraction(a, b)});
      case 1: return pick(std::vector{A + "\\sqrt{" + B + "}", "\\sqrt{" + std::to_string(a * a * b) + "}", "\\sqrt{" + B + "} \\cdot " + A,
                                      "\\frac{" + std::to_string(a * b) + "}{\\sqrt{" + B + "}}", A + "*sqrt(" + B + ")"});
      case 2: return pick(std::vector{"(x+" + A + ")(x-" + B + ")", "x^2+" + std::to_string(a - b) + "x-" + std::to_string(a * b),
                                      "x(x-" + B + ")+" + A + "(x-" + B + ")", "(x - " + B + ") \\cdot (" + A + " + x)"});
      case 3: return pick(std::vector{"\\{" + A + ", " + B + "+100, -" + C + "\\}", "\\{-" + C + "," + std::to_string(b + 100) + "," + A + "\\}",
                                      std::to_string(b + 100) + ", -" + C + ", " + A});
      case 4: return pick(std::vector{"\\left(" + A + ", \\frac{" + B + "}{" + C + "}\\right)", "(" + A + "," + fraction(b, c) + ")"});
      case 5: return pick(std::vector{A + "^\\circ", A + "°", A + "^{\\circ}", A + " degrees"});
      case 6: return pick(std::vector{A + "+" + B + "i", B + "i + " + A, A + "-" + B + "/i"});
      case 7: return pick(std::vector{"(" + std::to_string(-a) + ", \\infty)", "x > -" + A, "-" + A + " < x", "\\{x \\mid x > " + std::to_string(-a) + "\\}"});
      case 8: return pick(std::vector{A + "\\ln " + B, "\\ln(" + B + "^{" + A + "})", "\\ln\\left(" + B + "\\right) \\times " + A});
      default: return pick(std::vector{"\\frac{" + A + "\\pi}{" + B + "}", A + "\\pi/" + B, "\\pi \\cdot \\frac{" + A + "}{" + B + "}", "π*" + A + "/" + B});
    }
  }

 private:
  std::mt19937 random_{20240607};
};

Verdict raw(const std::string& a, const std::string& b) {
  return grade_math(a, b, {.raw = true, .identical_shortcut = false}).verdict;
}

TEST(MathProperties, ASpellingEqualsEveryOther) {
  Generator generator;
  for (int round = 0; round < 2000; ++round) {
    const int kind = static_cast<int>(generator.number(0, 9));
    const long a = generator.number(2, 40), b = generator.number(2, 40), c = generator.number(2, 40);
    const std::string one = generator.expression(kind, a, b, c), two = generator.expression(kind, a, b, c);
    EXPECT_EQ(raw(one, two), Verdict::kCorrect) << one << "  and  " << two;
    EXPECT_EQ(raw(two, one), Verdict::kCorrect) << two << "  and  " << one;
  }
}

TEST(MathProperties, AnotherParameterMakesItDiffer) {
  Generator generator;
  for (int round = 0; round < 2000; ++round) {
    const int kind = static_cast<int>(generator.number(0, 9));
    const long a = generator.number(2, 40), b = generator.number(2, 40), c = generator.number(2, 40);
    const std::string one = generator.expression(kind, a, b, c), two = generator.expression(kind, a + 1, b, c);
    EXPECT_EQ(raw(one, two), Verdict::kWrong) << one << "  and  " << two;
    EXPECT_EQ(raw(two, one), Verdict::kWrong) << two << "  and  " << one;
  }
}

TEST(MathProperties, AChangedDigitMakesANumberDiffer) {
  Generator generator;
  for (int round = 0; round < 2000; ++round) {
    std::string digits;
    const long length = generator.number(1, 40);
    for (long k = 0; k < length; ++k) digits += static_cast<char>('0' + generator.number(k == 0 ? 1 : 0, 9));
    std::string number = digits;
    if (generator.number(0, 1) == 1) number.insert(static_cast<std::size_t>(generator.number(1, length)), ".");
    std::string changed = number;
    std::size_t place;
    do place = static_cast<std::size_t>(generator.number(0, static_cast<long>(number.size()) - 1));
    while (changed[place] == '.');
    changed[place] = static_cast<char>('0' + (changed[place] - '0' + generator.number(1, 9)) % 10);
    EXPECT_EQ(raw(number, number + " "), Verdict::kCorrect) << number;
    EXPECT_EQ(raw(number, changed), Verdict::kWrong) << number << "  and  " << changed;
    EXPECT_EQ(raw("\\sqrt{" + number + "}", "\\sqrt{" + changed + "}"), Verdict::kWrong) << number << "  and  " << changed;
  }
}

}  // namespace
}  // namespace antisd
