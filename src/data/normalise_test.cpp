#include "data/normalise.h"

#include <gmock/gmock.h>

namespace antisd::inline data {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Normalise, WhiteSpaceAndCase) {
  EXPECT_EQ(normalised_text("  Find\t X\r\n\nnow "), "find x now");
  EXPECT_EQ(normalised_text(""), "");
  EXPECT_EQ(normalised_text(" \n"), "");
  // No-break space, ideographic space, line separator.
  EXPECT_EQ(normalised_text("a\u00A0b\u3000c\u2028d"), "a b c d");
  EXPECT_EQ(normalised_text("ÉCOLE Straße ΣΑΣ"), "école strasse σασ");
  EXPECT_EQ(normalised_text("\xff"), "\xEF\xBF\xBD");
}

TEST(Normalise, WordsIgnoreFormatting) {
  EXPECT_EQ(word_hashes("Let $x+1$ be \\frac{1}{2}."), word_hashes("let \\(X + 1\\) be frac 1 2"));
  EXPECT_THAT(word_hashes("one two, three"), SizeIs(3));
  EXPECT_THAT(word_hashes("x12 y"), SizeIs(2));
  EXPECT_NE(word_hashes("ab c"), word_hashes("a bc"));
  // Every Han character is a word: 求, x, 的, 值.
  EXPECT_THAT(word_hashes("求x的值"), SizeIs(4));
  EXPECT_THAT(word_hashes("$$ ... $$"), IsEmpty());
}

TEST(Normalise, NgramsAreDistinct) {
  EXPECT_THAT(word_ngrams("a b c d", 5), IsEmpty());
  EXPECT_THAT(word_ngrams("a b c d e", 5), SizeIs(1));
  EXPECT_THAT(word_ngrams("a b c d e f g", 5), SizeIs(3));
  EXPECT_THAT(word_ngrams("a a a a a a a", 5), SizeIs(1));
  EXPECT_NE(word_ngrams("a b c d e", 5), word_ngrams("b a c d e", 5));
}

TEST(Normalise, CharactersAreCodePoints) {
  EXPECT_EQ(count_characters("abc"), 3);
  EXPECT_EQ(count_characters("é求😀"), 3);
}

}  // namespace
}  // namespace antisd::inline data
