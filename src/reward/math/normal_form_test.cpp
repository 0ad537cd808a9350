#include "reward/math/normal_form.h"

#include <gtest/gtest.h>

#include "reward/math/latex_parser.h"

namespace antisd::inline reward::math {
namespace {

Comparison compared(const char* a, const char* b) {
  Arena arena;
  Budget budget(1000);
  Normalizer normalizer(budget);
  const auto left = normalizer.normalize(parse_expression(arena, a, budget));
  const auto right = normalizer.normalize(parse_expression(arena, b, budget));
  if (!left || !right) return Comparison::kUnknown;
  return normalizer.compare(*left, *right);
}

TEST(NormalForm, ProvesEquality) {
  const std::pair<const char*, const char*> equal[] = {
      {"(x+1)^3", "x^3+3x^2+3x+1"},
      {"\\sqrt{8}", "2\\sqrt{2}"},
      {"\\sqrt{6}", "\\sqrt{2}\\sqrt{3}"},
      {"\\frac{1}{1+i}", "\\frac{1-i}{2}"},
      {"\\frac{1}{\\sqrt{3}-1}", "\\frac{\\sqrt3+1}{2}"},
      {"\\frac{x^2-1}{x-1}", "x+1"},
      {"\\sqrt[3]{16}", "2\\sqrt[3]{2}"},
      {"\\sqrt{\\frac{2}{3}}", "\\frac{\\sqrt6}{3}"},
      {"\\sin(x+x)", "\\sin(2x)"},
      {"2^{n}+3", "3+2^n"},
      {"(x-x)y", "0"},
      {"\\frac{a}{b}+\\frac{c}{d}", "\\frac{ad+bc}{bd}"}};
  for (const auto& [a, b] : equal)
    EXPECT_EQ(compared(a, b), Comparison::kEqual) << a << "  and  " << b;
}

TEST(NormalForm, ProvesDifferenceOfRationalFunctionsOnly) {
  EXPECT_EQ(compared("x+1", "x+2"), Comparison::kDifferent);
  EXPECT_EQ(compared("\\frac{x}{y}", "\\frac{y}{x}"), Comparison::kDifferent);
  EXPECT_EQ(compared("\\sin^2 x+\\cos^2 x", "1"), Comparison::kUnknown);
  EXPECT_EQ(compared("\\sqrt{3+2\\sqrt{2}}", "1+\\sqrt{2}"), Comparison::kUnknown);
  EXPECT_EQ(compared("\\frac{1}{x-x}", "1"), Comparison::kUnknown);
  EXPECT_EQ(compared("(a+b+c+d+e+f)^{30}", "1"), Comparison::kUnknown);  // too large
}

}  // namespace
}  // namespace antisd::inline reward::math
