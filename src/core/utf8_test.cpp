#include "core/utf8.h"

#include <gtest/gtest.h>

namespace antisd::inline core {
namespace {

TEST(Utf8, EveryCodePointSurvivesARoundTrip) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    ASSERT_EQ(find_invalid_utf8(text), std::nullopt) << std::hex << static_cast<unsigned>(c);
    std::size_t position = 0;
    ASSERT_EQ(next_code_point(text, position), c);
    ASSERT_EQ(position, text.size());
  }
}

TEST(Utf8, FindsTheFirstIllFormedByte) {
  EXPECT_EQ(find_invalid_utf8("plain"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("ab\xFFzz"), 2u);
  EXPECT_EQ(find_invalid_utf8("\xC0\x80"), 0u) << "over-long NUL";
  EXPECT_EQ(find_invalid_utf8("a\xED\xA0\x80"), 1u) << "surrogate U+D800";
  EXPECT_EQ(find_invalid_utf8("\xF4\x90\x80\x80"), 0u) << "above U+10FFFF";
  EXPECT_EQ(find_invalid_utf8("ok\xE4\xB8"), 2u) << "cut short";
}

// Expected values: Python's bytes.decode("utf-8", errors="replace").
TEST(Utf8, ReplacesMaximalSubparts) {
  EXPECT_EQ(replace_invalid_utf8("a\xE4\xB8z"), "a\uFFFDz");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x80\x80\x41"), "\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(replace_invalid_utf8("\xC3\xA9"), "\u00E9");
}

}  // namespace
}  // namespace antisd::inline core
