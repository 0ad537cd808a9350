#include "reward/visible_text.h"

#include <gtest/gtest.h>

namespace antisd::inline reward {
namespace {

TEST(VisibleText, IsWhatStandsOutsideTheReasoning) {
  EXPECT_EQ(visible_text("a<think>b</think>c"), "a\nc");
  EXPECT_EQ(visible_text("a<think>b</think>c<think>d</think>e"), "a\nc\ne");
  EXPECT_EQ(visible_text("1 < 2 and <b>"), "1 < 2 and <b>");
  EXPECT_EQ(visible_text(""), "");
}

TEST(VisibleText, AClosingTagAloneEndsWhatThePromptOpened) {
  EXPECT_EQ(visible_text("a</think>b"), "b");
  EXPECT_EQ(visible_text("a<think>b</think>c</think>d"), "d");
  EXPECT_EQ(visible_text("a</think>"), "");
}

TEST(VisibleText, NothingBehindAnOpeningTagAloneCounts) {
  EXPECT_EQ(visible_text("a<think>b"), "a");
  EXPECT_EQ(visible_text("<think>a</think>b<think>c"), "\nb");
  EXPECT_EQ(visible_text("<think><think>a</think>b"), "\nb") << "reasoning does not nest";
}

}  // namespace
}  // namespace antisd::inline reward
