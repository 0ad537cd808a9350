// The hand-written scanners against the regular expressions they replace.
#include "text/tokenizer/scanner.h"

#include <random>

#include <gtest/gtest.h>

#include "core/utf8.h"
#include "text/tokenizer/regex.h"

namespace antisd::inline text {
namespace {

std::vector<std::string> by_regex(const Regex& regex, std::string_view text) {
  std::vector<std::string> pieces;
  regex.for_each_match(text, [&](std::size_t begin, std::size_t end) {
    pieces.emplace_back(text.substr(begin, end - begin));
  });
  return pieces;
}

std::vector<std::string> by_scanner(Scanner scanner, std::string_view text) {
  std::vector<std::string> pieces;
  scan(scanner, text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

class ScannerOf : public ::testing::TestWithParam<std::string_view> {
 protected:
  const Regex regex{GetParam(), "test"};
  const Scanner scanner = find_scanner(GetParam()).value();
};

TEST_P(ScannerOf, EqualsItsPatternOnRandomTexts) {
  const std::vector<std::string> parts = {
      "a",      "B",      "é",          "日",     "1",      "2", "½", " ",      "  ",
      "\n",     "\r\n",   "\t",         "\u00a0", "\u3000", "'", "s", "S",      "\u017F",
      "'ll",    "'Re",    "'ve",        ".",      ",",      "$", "_", "\u0301", "\u200d",
      "\u180e", "\u0085", "\U0001F600", "\u2028", "l",      "e", "v"};
  std::mt19937 random(7);
  for (int round = 0; round < 40'000; ++round) {
    std::string text;
    for (int count = static_cast<int>(random() % 12); count > 0; --count) {
      text += parts[random() % parts.size()];
    }
    ASSERT_EQ(by_scanner(scanner, text), by_regex(regex, text)) << text;
  }
}

TEST_P(ScannerOf, EqualsItsPatternOnEveryCodePoint) {
  std::string text;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    text += "a";
    append_utf8(text, c);
    text += "1 ";
    append_utf8(text, c);
    text += "\n'";
    append_utf8(text, c);
    append_utf8(text, c);
    if (text.size() < 10'000 && c != 0x10FFFF) continue;
    ASSERT_EQ(by_scanner(scanner, text), by_regex(regex, text)) << "up to " << std::uint32_t{c};
    text.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, ScannerOf,
                         ::testing::Values(kGpt2Pattern, kQwen2Pattern, kCl100kPattern));

TEST(Scanner, IsFoundByPatternOnly) {
  EXPECT_EQ(find_scanner(kQwen2Pattern), Scanner::kQwen2);
  EXPECT_EQ(find_scanner(std::string(kQwen2Pattern) + "|x"), std::nullopt);
}

}  // namespace
}  // namespace antisd::inline text
