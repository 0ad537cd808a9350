// Properties of generated answers: a value equals itself in every spelling, and differs if a digit
// changes. The generator is seeded, so failures are reproducible.
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reward/math/grader.h"

namespace antisd::inline reward {
namespace {

class Generator {
 public:
  long number(long low, long high) {
    return std::uniform_int_distribution<long>(low, high)(random_);
  }
  template <typename List>
  std::string pick(const List& list) {
    return list[number(0, static_cast<long>(std::size(list)) - 1)];
  }

  std::string fraction(long a, long b) {
    std::vector<std::string> spellings = {
        fmt::format("\\frac{{{}}}{{{}}}", a, b), fmt::format("\\dfrac{{{}}}{{{}}}", a, b),
        fmt::format("{}/{}", a, b), fmt::format("{{{} \\over {}}}", a, b),
        fmt::format("\\frac{{{}}}{{{}}}", 3 * a, 3 * b)};
    if (a > 0 && a < 10 && b < 10) spellings.push_back(fmt::format("\\frac{}{}", a, b));
    return pick(spellings);
  }

  // One spelling of the expression that `kind` and the parameters define.
  std::string expression(int kind, long a, long b, long c) {
    using fmt::format;
    using List = std::vector<std::string>;
    switch (kind) {
      case 0:
        return fraction(a, b);
      case 1:
        return pick(List{format("{}\\sqrt{{{}}}", a, b), format("\\sqrt{{{}}}", a * a * b),
                         format("\\sqrt{{{}}} \\cdot {}", b, a),
                         format("\\frac{{{}}}{{\\sqrt{{{}}}}}", a * b, b),
                         format("{}*sqrt({})", a, b)});
      case 2:
        return pick(List{format("(x+{})(x-{})", a, b), format("x^2+{}x-{}", a - b, a * b),
                         format("x(x-{1})+{0}(x-{1})", a, b),
                         format("(x - {1}) \\cdot ({0} + x)", a, b)});
      case 3:
        return pick(List{format("\\{{{}, {}+100, -{}\\}}", a, b, c),
                         format("\\{{-{2},{1},{0}\\}}", a, b + 100, c),
                         format("{1}, -{2}, {0}", a, b + 100, c)});
      case 4:
        return pick(List{format("\\left({}, \\frac{{{}}}{{{}}}\\right)", a, b, c),
                         format("({},{})", a, fraction(b, c))});
      case 5:
        return pick(List{format("{}^\\circ", a), format("{}°", a), format("{}^{{\\circ}}", a),
                         format("{} degrees", a)});
      case 6:
        return pick(
            List{format("{}+{}i", a, b), format("{1}i + {0}", a, b), format("{}-{}/i", a, b)});
      case 7:
        return pick(List{format("(-{}, \\infty)", a), format("x > -{}", a), format("-{} < x", a),
                         format("\\{{x \\mid x > -{}\\}}", a)});
      case 8:
        return pick(List{format("{}\\ln {}", a, b), format("\\ln({1}^{{{0}}})", a, b),
                         format("\\ln\\left({1}\\right) \\times {0}", a, b)});
      default:
        return pick(List{format("\\frac{{{}\\pi}}{{{}}}", a, b), format("{}\\pi/{}", a, b),
                         format("\\pi \\cdot \\frac{{{}}}{{{}}}", a, b), format("π*{}/{}", a, b)});
    }
  }

 private:
  std::mt19937 random_{20240607};
};

std::optional<double> raw(const std::string& a, const std::string& b) {
  return grade_math(a, b, {.raw = true, .identical_shortcut = false}).reward;
}

TEST(MathProperties, ASpellingEqualsEveryOther) {
  Generator generator;
  for (int round = 0; round < 2000; ++round) {
    const int kind = static_cast<int>(generator.number(0, 9));
    const long a = generator.number(2, 40), b = generator.number(2, 40),
               c = generator.number(2, 40);
    const std::string one = generator.expression(kind, a, b, c),
                      two = generator.expression(kind, a, b, c);
    EXPECT_EQ(raw(one, two), 1.0) << one << "  and  " << two;
    EXPECT_EQ(raw(two, one), 1.0) << two << "  and  " << one;
  }
}

TEST(MathProperties, AnotherParameterMakesItDiffer) {
  Generator generator;
  for (int round = 0; round < 2000; ++round) {
    const int kind = static_cast<int>(generator.number(0, 9));
    const long a = generator.number(2, 40), b = generator.number(2, 40),
               c = generator.number(2, 40);
    const std::string one = generator.expression(kind, a, b, c),
                      two = generator.expression(kind, a + 1, b, c);
    EXPECT_EQ(raw(one, two), 0.0) << one << "  and  " << two;
    EXPECT_EQ(raw(two, one), 0.0) << two << "  and  " << one;
  }
}

TEST(MathProperties, AChangedDigitMakesANumberDiffer) {
  Generator generator;
  for (int round = 0; round < 2000; ++round) {
    std::string digits;
    const long length = generator.number(1, 40);
    for (long k = 0; k < length; ++k)
      digits += static_cast<char>('0' + generator.number(k == 0 ? 1 : 0, 9));
    std::string number = digits;
    if (generator.number(0, 1) == 1)
      number.insert(number.begin() + generator.number(1, length), '.');
    std::string changed = number;
    std::size_t place;
    do
      place = static_cast<std::size_t>(generator.number(0, static_cast<long>(number.size()) - 1));
    while (changed[place] == '.');
    changed[place] = static_cast<char>('0' + (changed[place] - '0' + generator.number(1, 9)) % 10);
    EXPECT_EQ(raw(number, fmt::format("{} ", number)), 1.0) << number;
    EXPECT_EQ(raw(number, changed), 0.0) << number << "  and  " << changed;
    EXPECT_EQ(raw(fmt::format("\\sqrt{{{}}}", number), fmt::format("\\sqrt{{{}}}", changed)), 0.0)
        << number << "  and  " << changed;
  }
}

}  // namespace
}  // namespace antisd::inline reward
