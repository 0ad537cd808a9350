#include "context/templates.h"

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline context {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(FillTemplate, PutsInWhatItKnowsAndLooksAtItOnce) {
  EXPECT_EQ(fill_template("{a}-{b}-{a}", {{"a", "1"}, {"b", "{a}"}}), "1-{a}-1");
  EXPECT_EQ(fill_template("\\boxed{} {x", {{"x", "1"}}), "\\boxed{} {x");
  EXPECT_EQ(fill_template("\\boxed{{answer}}.", {{"answer", "\\frac{1}{2}"}}),
            "\\boxed{\\frac{1}{2}}.");
  EXPECT_EQ(fill_template("", {}), "");
}

TEST(Templates, StudentPromptsAreThePapers) {
  EXPECT_EQ(fill_template(student_template("math"), {{"problem", "1 + 1?"}}),
            "Solve the following math problem. Place the final answer in \\boxed{}.\n1 + 1?");
  EXPECT_EQ(fill_template(student_template("code"), {{"problem", "Sort."}}),
            "You are a coding expert. Write a correct Python function that solves the following "
            "problem; place the final code in a ```python block.\nSort.");
  EXPECT_EQ(student_template("none"), "{problem}");
  EXPECT_EQ(student_template("Q: {problem} A:"), "Q: {problem} A:");
  EXPECT_THAT(error_of([] { student_template("mth"); }), HasSubstr("data.template"));
}

TEST(Templates, FeedbackIsAboutTheResponse) {
  const TaskTemplates& math = task_templates("math");
  const TaskTemplates& code = task_templates("code");
  EXPECT_EQ(feedback_text(math, {.reward = 1.0}), "Your answer is correct.");
  EXPECT_EQ(feedback_text(math, {.reward = 0.0}), "Your answer is incorrect.");
  EXPECT_EQ(feedback_text(code, {.reward = 7.0 / 12, .passed = 7, .total = 12}),
            "Your code passes 7 of 12 test cases.");
  EXPECT_EQ(feedback_text(code, {.reward = 0.0}), "Your code is incorrect.");
  EXPECT_EQ(feedback_text(task_templates("countdown"), {.reward = 0.0}), "incorrect");
}

TEST(Templates, ASolutionIsWhatFollowsTheThinking) {
  EXPECT_EQ(text_after_last("reason</think>ans", "</think>"), "ans");
  EXPECT_EQ(text_after_last("<think>a</think>b</think>\n\n c \n", "</think>"), "c");
  EXPECT_EQ(text_after_last("  plain ", "</think>"), "plain");
  EXPECT_EQ(text_after_last("only thought</think> \n", "</think>"), "");
}

TEST(Templates, TheConfigurationReplacesATasksOwn) {
  const StringMap own = {{"math", "{prompt} S {solution} F {feedback}"},
                         {"code_without_solution", "{problem} {feedback}"}};
  EXPECT_EQ(teacher_templates("math", own).teacher, own.at("math"));
  EXPECT_EQ(teacher_templates("code", own).teacher_without_solution,
            own.at("code_without_solution"));
  EXPECT_EQ(teacher_templates("code", own).teacher, task_templates("code").teacher);
  EXPECT_THAT(error_of([] {
                teacher_templates("math", {{"maths", "{prompt}"}});
              }),
              HasSubstr("'math'"));
  EXPECT_THAT(error_of([] {
                teacher_templates("math", {{"math", "{prompt} {feedback}"}});
              }),
              HasSubstr("{solution}"));
  EXPECT_THAT(error_of([] {
                teacher_templates("math", {{"code", "{solution} {feedback}"}});
              }),
              HasSubstr("{prompt} or {problem}"));
}

TEST(Templates, TheTaskIsTheRewards) {
  EXPECT_EQ(task_of({.kind = "code"}, {.template_name = "math"}), "code");
  EXPECT_EQ(task_of({.kind = "command"}, {.template_name = "countdown"}), "countdown");
  EXPECT_EQ(task_of({.kind = "command"}, {.template_name = "Q {problem}"}), "math");
}

}  // namespace
}  // namespace antisd::inline context
