#include "reward/math/answer_extract.h"

#include <gtest/gtest.h>

#include "reward/math/answer_text.h"

namespace antisd::inline reward::math {
namespace {

TEST(Extract, Boxes) {
  EXPECT_EQ(last_box("x \\boxed{\\frac{1}{2}} y"), "\\frac{1}{2}");
  EXPECT_EQ(last_box("\\boxed{\\{1\\}}"), "\\{1\\}");
  EXPECT_EQ(last_box("\\boxed 5 ."), "5");
  EXPECT_EQ(last_box("\\boxed  {5}"), "5");
  EXPECT_EQ(last_box("\\fbox{7} and \\framebox{8}"), "7, 8");
  EXPECT_EQ(last_box("\\boxed{1}, \\boxed{2} and $\\boxed{3}$"), "1, 2, 3");
  EXPECT_EQ(last_box("\\boxed{1} so \\boxed{2}"), "2");
  EXPECT_EQ(last_box("\\boxed{5}, \\boxed{5}"), "5");
  EXPECT_EQ(last_box("\\boxed{4} \\boxed{5"), "4");
  EXPECT_EQ(last_box("\\boxedfoo{1} box"), std::nullopt);
  EXPECT_EQ(last_box(""), std::nullopt);
}

TEST(Extract, BoxesThatAnswerTogether) {
  EXPECT_EQ(last_box("\\boxed{1}\\boxed{2}"), "1, 2");
  EXPECT_EQ(last_box("\\boxed{1}\n\\boxed{2}"), "2");
  EXPECT_EQ(last_box("\\boxed{1} red and \\boxed{2} blue ones"), "1, 2");
  EXPECT_EQ(last_box("$x_1 = \\boxed{1}$, $x_2 = \\boxed{2}$"), "1, 2");
  EXPECT_EQ(last_box("(a) \\boxed{1}, and (b) \\boxed{2}"), "1, 2");
  EXPECT_EQ(last_box("(a) \\boxed{1} (b) \\boxed{2}"), "2");
  EXPECT_EQ(last_box("\\boxed{1} and x + 1 = \\boxed{2}"), "2");
  EXPECT_EQ(last_box("\\boxed{1}. And \\boxed{2}"), "2");
  EXPECT_EQ(last_box("\\boxed{1} = \\boxed{1}"), "1");
}

TEST(Extract, AFinalFormulaBehindTheBoxes) {
  EXPECT_EQ(last_box("\\boxed{1}. The final answer is $2$. Done."), "2");
  EXPECT_EQ(last_box("\\boxed{1}. The final answer is $2$ more than that."), "1");
  EXPECT_EQ(last_box("\\boxed{1}. The final answer is right."), "1");
}

TEST(Extract, TheNextTurnDoesNotCount) {
  EXPECT_EQ(without_next_turn("a <|im_start|>user b"), "a ");
  EXPECT_EQ(without_next_turn("a <|x|> b <| c"), "a <|x|> b <| c");
}

TEST(Extract, BackslashesEscapedTwice) {
  EXPECT_EQ(with_single_backslashes("\\\\frac{1}{2}"), "\\frac{1}{2}");
  EXPECT_EQ(with_single_backslashes("\\frac{1}{2} \\\\frac"), "\\frac{1}{2} \\\\frac");
  EXPECT_EQ(with_single_backslashes("1 \\\\ x"), "1 \\\\ x");
}

TEST(Extract, StatedAnswers) {
  EXPECT_EQ(stated_answer("The answer is 5."), "5");
  EXPECT_EQ(stated_answer("The answer is 5. Or the answer is: 6"), "6");
  EXPECT_EQ(stated_answer("**Answer:** $\\frac{1}{2}$"), "\\frac{1}{2}");
  EXPECT_EQ(stated_answer("Final Answer: The final answer is $7$. I hope it is correct."), "7");
  EXPECT_EQ(stated_answer("the answer to the question is 3.5 cm"), "3.5 cm");
  EXPECT_EQ(stated_answer("The answers are $1$ and $2$."), "1, 2");
  EXPECT_EQ(stated_answer("Answer:\n\n$$\n12\n$$"), "12");
  EXPECT_EQ(stated_answer("so\n#### 1,234"), "1,234");
  EXPECT_EQ(stated_answer("I have no answer"), std::nullopt);
  EXPECT_EQ(stated_answer("so <answer> $5$ </answer>"), "5");
}

TEST(Extract, BareAnswers) {
  EXPECT_EQ(bare_answer("$x = 5$"), "x = 5");
  EXPECT_EQ(bare_answer("$$5$$"), "5");
  EXPECT_EQ(bare_answer("\\(5\\)"), "5");
  EXPECT_EQ(bare_answer("The area is $5$ square units."), "5");
  EXPECT_EQ(bare_answer("\\$5"), "\\$5");
  EXPECT_EQ(bare_answer("x is 5."), "5");
  EXPECT_EQ(bare_answer("$50$%"), "50\\%");
  EXPECT_EQ(bare_answer("The final answer is 5. I hope it is correct."), "5");
  EXPECT_EQ(bare_answer("She sold -18.5 of them in May"), "-18.5");
  EXPECT_EQ(bare_answer("June 20"), "June 20");
  EXPECT_EQ(bare_answer("\\text{the value is } 5"), "\\text{the value is } 5");
}

TEST(Text, Choices) {
  EXPECT_EQ(choice_letter("A", true), 'A');
  EXPECT_EQ(choice_letter("\\textbf{(B)}", true), 'B');
  EXPECT_EQ(choice_letter("(C) 12", true), std::nullopt);
  EXPECT_EQ(choice_letter("(C) 12", false), 'C');
  EXPECT_EQ(choice_letter("AB", false), std::nullopt);
  EXPECT_EQ(choice_letter("A = 5", false), std::nullopt);
}

TEST(Text, KeysIgnoreLayout) {
  EXPECT_EQ(text_key("\\text{No Solution}"), text_key("no  solution"));
  EXPECT_EQ(text_key("x^{2}"), text_key("x^2"));
  EXPECT_NE(text_key("x^{a+b}"), text_key("x^a+b"));
  EXPECT_NE(text_key("1 2"), text_key("12"));
}

}  // namespace
}  // namespace antisd::inline reward::math
