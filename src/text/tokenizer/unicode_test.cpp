// Facts of the Unicode standard, and where `tokenizers` differs from it.
#include "text/tokenizer/unicode.h"

#include <gtest/gtest.h>

#include "core/utf8.h"

namespace antisd::inline text {
namespace {

TEST(Unicode, NormalForms) {
  EXPECT_EQ(normalize("e\u0301", NormalForm::kNfc), "é");
  EXPECT_EQ(normalize("é", NormalForm::kNfd), "e\u0301");
  EXPECT_EQ(normalize("q\u0307\u0323", NormalForm::kNfc), "q\u0323\u0307");  // canonical order
  EXPECT_EQ(normalize("\u1100\u1161\u11A8", NormalForm::kNfc), "각");
  EXPECT_EQ(normalize("\u212B", NormalForm::kNfc), "Å");
  EXPECT_EQ(normalize("ﬁ²", NormalForm::kNfkc), "fi2");
  EXPECT_EQ(normalize("ẛ̣", NormalForm::kNfkd), "s\u0323\u0307");
  EXPECT_EQ(normalize(std::string("a\0b\u0301", 5), NormalForm::kNfd),
            std::string("a\0b\u0301", 5));
}

TEST(Unicode, LeavesAloneWhatTokenizersDoesNotKnow) {
  EXPECT_EQ(normalize("\U00011935\U00011930", NormalForm::kNfc), "\U00011935\U00011930");
  EXPECT_EQ(normalize("\u32FF", NormalForm::kNfkc), "\u32FF");
  EXPECT_EQ(normalize("a\u09FE\u0334", NormalForm::kNfc), "a\u09FE\u0334");
}

TEST(Unicode, TheCheapLookNeverClaimsTooMuch) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    if (!is_surely_normal(text, NormalForm::kNfc)) continue;
    // Neither changed by itself, nor joined to what precedes it.
    for (const char* before : {"", "a", "\u1100", "\uAC00", "\u0915"}) {
      std::string whole = before + text;
      // An unstable tail makes normalize() take the slow path.
      ASSERT_EQ(normalize(whole + "\u05D0", NormalForm::kNfc), whole + "\u05D0")
          << std::uint32_t{c};
    }
  }
}

TEST(Unicode, OrderingALongRunOfMarksIsNotQuadratic) {
  std::string text = "a";
  for (int i = 0; i < 300'000; ++i)
    text += "\u0301";
  for (int i = 0; i < 300'000; ++i)
    text += "\u0323";
  const std::string normal = normalize(text, NormalForm::kNfd);
  EXPECT_EQ(normal.size(), text.size());
  EXPECT_EQ(normal.substr(0, 3), "a\u0323");
}

TEST(Unicode, Classes) {
  EXPECT_STREQ(general_category(U'A'), "Lu");
  EXPECT_STREQ(general_category(0x1E5D0), "Lo");  // Unicode 16
  EXPECT_STREQ(general_category(0x378), "Cn");
  EXPECT_EQ(character_class(U'Ⅷ'), CharacterClass::kNumber);
  EXPECT_EQ(character_class(0x85), CharacterClass::kSpace);
  EXPECT_EQ(character_class(0x180E), CharacterClass::kOther);
  EXPECT_EQ(character_class(0x10FFFF), CharacterClass::kOther);
  EXPECT_TRUE(is_word_character(0x200D));
  EXPECT_FALSE(is_word_character(U'½'));
  EXPECT_TRUE(is_punctuation(U'$'));
  EXPECT_FALSE(is_punctuation(0x2E43));
  EXPECT_TRUE(is_numeric(U'½'));
  EXPECT_EQ(to_lowercase("ÀİΣ\uA7CB"), "ài\u0307σ\u0264");
}

}  // namespace
}  // namespace antisd::inline text
