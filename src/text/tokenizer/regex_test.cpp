#include "text/tokenizer/regex.h"

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  std::vector<std::string> result;
  Regex(pattern, "test").for_each_match(text, [&](std::size_t begin, std::size_t end) {
    result.emplace_back(text.substr(begin, end - begin));
  });
  return result;
}

// If Oniguruma and PCRE2 differ, Oniguruma's meaning counts.
TEST(Regex, ReadsClassesAsOnigurumaDoes) {
  EXPECT_THAT(matches(R"(\s)", "\u180e\u0085\u3000"), ElementsAre("\u0085", "\u3000"));
  EXPECT_THAT(matches(R"([^\S\n]+)", " \u180e\n"), ElementsAre(" "));
  EXPECT_THAT(matches(R"(\w+)", "a\u0301_² ½!"), ElementsAre("a\u0301_²", "½"));
  EXPECT_THAT(matches(R"(\p{L}+)", "\U0001E5D0\U000323AF1"), ElementsAre("\U0001E5D0\U000323AF"));
  EXPECT_THAT(matches(R"(\p{Han}+)", "漢、字"), ElementsAre("漢", "字"));
  EXPECT_THAT(matches(R"([^\p{L}\p{N}]+)", "a-1\u0301"), ElementsAre("-", "\u0301"));
  EXPECT_THAT(matches(R"(\P{L})", "a1"), ElementsAre("1"));
  EXPECT_THAT(matches(R"(^a$)", "a\nb\na"), ElementsAre("a", "a"));
  EXPECT_THAT(matches(R"(\x{e9}|\u00e8|\xea)", "éèê"), ElementsAre("é", "è", "ê"));
}

TEST(Regex, StepsOverEmptyMatches) {
  EXPECT_THAT(matches("x*", "axé"), ElementsAre("", "x", ""));
  EXPECT_EQ(Regex("x*", "test").replace_all("axa", "-"), "-a-a-");
}

TEST(Regex, RefusesWhatItCannotTranslate) {
  for (const char* pattern : {R"(\h)", R"(\bword)", R"([a&&b])", R"([[:alpha:]])", R"((?<name>a))",
                              R"(\p{Greek})", R"([\W])", R"(\K)", R"(\1)", "[a", "\\", "(?m:a)",
                              R"(\p{Lu)", R"(\x{zz})", "[]a]", "(*UTF)"}) {
    EXPECT_THAT(testing::error_of([&] { Regex(pattern, "some.json"); }), HasSubstr("some.json"))
        << pattern;
  }
  EXPECT_THAT(testing::error_of([&] { Regex(std::string(200, '(') + std::string(200, ')'), "w"); }),
              HasSubstr("not valid"));
}

TEST(Regex, GivesUpOnABacktrackingPattern) {
  EXPECT_THAT(testing::error_of([&] { matches("(a+)+$", std::string(60, 'a') + "b"); }),
              HasSubstr("gave up"));
}

TEST(Regex, EscapesLiterals) {
  EXPECT_THAT(matches(escape_regex("a.b*[c]-^$|(x)\\#&"), "zzza.b*[c]-^$|(x)\\#&"),
              ElementsAre("a.b*[c]-^$|(x)\\#&"));
}

}  // namespace
}  // namespace antisd::inline text
