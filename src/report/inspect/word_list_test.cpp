#include "report/inspect/word_list.h"

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> kinds(const WordList& list, const std::vector<std::string>& texts,
                               const std::vector<bool>& special = {}) {
  std::vector<std::string> names;
  for (const std::uint8_t kind : list.kinds_of(texts, special))
    names.push_back(list.kinds().at(kind));
  return names;
}

WordList built_in_words() {
  return WordList::parse(WordList::default_text(), "built in");
}

TEST(WordList, TheDefaultKnowsThePapersTokensInEveryForm) {
  const WordList list = built_in_words();
  EXPECT_THAT(list.kinds(), ElementsAre("deliberation", "structure", "numbers", "other"));
  for (const char* token : {" Wait", "Wait", "wait", "Let", "Maybe", " Alternatively", "WAIT,"})
    EXPECT_THAT(kinds(list, {token}), ElementsAre("deliberation")) << token;
  for (const char* token : {"Given", " holds", "Assign", " succeeds", "\n\n", "Therefore", " \n"})
    EXPECT_THAT(kinds(list, {token}), ElementsAre("structure")) << token;
  for (const char* token : {"7", " 42", "3.14", "1,000", " -5", "five"})
    EXPECT_THAT(kinds(list, {token}), ElementsAre("numbers")) << token;
  for (const char* token : {" apple", "x2", "", " ", "\u4E2D"})
    EXPECT_THAT(kinds(list, {token}), ElementsAre("other")) << token;
}

TEST(WordList, ATokenIsOfTheKindOfItsWholeWord) {
  const WordList list = built_in_words();
  EXPECT_THAT(kinds(list, {" H", "mm", ",", " so", "lar"}),
              ElementsAre("deliberation", "deliberation", "structure", "other", "other"));
  // Three tokens of one word; the list does not contain the parts.
  EXPECT_THAT(kinds(list, {"Alt", "ern", "atively"}),
              ElementsAre("deliberation", "deliberation", "deliberation"));
  // A special token separates words and is not one.
  EXPECT_THAT(kinds(list, {"wa", "it", "it"}, {false, true, false}),
              ElementsAre("other", "other", "other"));
}

TEST(WordList, AListOfOnesOwn) {
  const WordList list = WordList::parse(
      "# mine\n\nsigns: <punctuation>\nends: <special>\ndoubt: \u7B49\u7B49 re-check\nbreak: "
      "\\n\\n "
      "\\boxed\ndoubt: hm\n",
      "mine");
  EXPECT_THAT(list.kinds(), ElementsAre("signs", "ends", "doubt", "break", "other"));
  EXPECT_THAT(kinds(list, {"!", "<e>", "\u7B49\u7B49", " Re-check", "\n\n", "\n", "\\boxed", "7"},
                    {false, true}),
              ElementsAre("signs", "ends", "doubt", "doubt", "break", "other", "break", "other"));
}

TEST(WordList, MistakesNameTheLine) {
  const auto message = [](const char* text) {
    return testing::error_of([&] { WordList::parse(text, "w.txt"); });
  };
  EXPECT_THAT(message("a: b\nword word\n"), HasSubstr("w.txt:2: the line does not name a kind"));
  EXPECT_THAT(message("a: b\nc: B\n"), HasSubstr("w.txt:2: 'B' is of 'a' already"));
  EXPECT_THAT(message("a: <digits>\n"), HasSubstr("there is no class <digits>"));
  EXPECT_THAT(message("a: <number>\nb: <number>\n"), HasSubstr("'<number>' is of 'a' already"));
  EXPECT_THAT(message("other: x\n"),
              HasSubstr("'other' is reserved for words that are not listed"));
  EXPECT_THAT(WordList::parse("", "empty").kinds(), ElementsAre("other"));
}

}  // namespace
}  // namespace antisd::inline report
