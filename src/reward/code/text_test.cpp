#include <gmock/gmock.h>

#include "reward/code/compare.h"
#include "reward/code/extract.h"

namespace antisd::inline reward {
namespace {

using ::testing::HasSubstr;

TEST(ExtractPython, TakesTheLastPythonBlock) {
  EXPECT_EQ(extract_python("```python\na\n```\ntext\n```python\nb\n```\nend"), "b\n");
  EXPECT_EQ(extract_python("```py\na\n```\n```\nplain\n```"), "a\n")
      << "a marked block wins over a later plain one";
  EXPECT_EQ(extract_python("```Python3 title=x\na\n```"), "a\n");
  EXPECT_EQ(extract_python("```cpp\nc\n```\n```\nplain\n```"), "plain\n");
  EXPECT_EQ(extract_python("~~~python\na\n~~~"), "a\n");
  EXPECT_EQ(extract_python("```python\na\n```\n```"), "a\n") << "a stray fence at the end";
  EXPECT_EQ(extract_python("```python\na\n```\n```python\n\n```"), "a\n")
      << "an empty block is none";
  EXPECT_EQ(extract_python("```cpp\nc\n```"), std::nullopt);
  EXPECT_EQ(extract_python("def f(): pass"), std::nullopt);
  EXPECT_EQ(extract_python(""), std::nullopt);
}

TEST(ExtractPython, OpenAndOddBlocks) {
  EXPECT_EQ(extract_python("text ```python\nno\n\n```python\ndef f():\n    return 1"),
            "def f():\n    return 1\n");
  EXPECT_EQ(extract_python("````python\na = '''\n```\n'''\n````"), "a = '''\n```\n'''\n");
  EXPECT_EQ(extract_python("1. so:\n   ```python\n   if x:\n     y\n   ```"), "if x:\n  y\n");
  EXPECT_EQ(extract_python("```python\r\na\r\n```\r\n"), "a\r\n");
}

TEST(ExtractPython, ThinkingNeverCounts) {
  EXPECT_EQ(extract_python("<think>```python\na\n```</think>no code"), std::nullopt);
  EXPECT_EQ(extract_python("<think>\n```python\na\n```\n</think>\n```python\nb\n```"), "b\n");
  EXPECT_EQ(extract_python("```python\na\n```\n</think>\nthat was all"), std::nullopt)
      << "the prompt opened it";
  EXPECT_EQ(extract_python("```python\na\n```\n<think>\n```python\nb\n```"), "a\n")
      << "it was never closed";
}

bool same_output(std::string_view printed, std::string_view expected) {
  return describe_difference(printed, expected).empty();
}

TEST(SameOutput, ForgivesBlanksAndLineEnds) {
  EXPECT_TRUE(same_output("1 2\n3\n", "1 2\n3"));
  EXPECT_TRUE(same_output("1 2 \r\n3\r\n\n\n", "1 2\n3\n"));
  EXPECT_TRUE(same_output("  1   2", "1 2"));
  EXPECT_TRUE(same_output("", "\n"));
  EXPECT_FALSE(same_output("1\n\n2", "1\n2"));
  EXPECT_FALSE(same_output("12", "1 2"));
  EXPECT_FALSE(same_output("1\n2\n3", "1\n2"));
  EXPECT_FALSE(same_output("", "1"));
  EXPECT_FALSE(same_output("YES", "Yes"));
}

TEST(SameOutput, NumbersWithAFractionMayBeNear) {
  EXPECT_TRUE(same_output("0.3333333333", "0.33333334"));
  EXPECT_TRUE(same_output("1234567.1", "1234567.2")) << "relative";
  EXPECT_TRUE(same_output("3.0", "3"));
  EXPECT_TRUE(same_output("1e-7 x", "0.0 x"));
  EXPECT_FALSE(same_output("0.33334", "0.33333"));
  EXPECT_FALSE(same_output("1000000", "1000001")) << "whole numbers are exact";
  EXPECT_FALSE(same_output("1000000000000000001", "1000000000000000000"));
  EXPECT_FALSE(same_output("1e18", "1000000000000000001"));
  EXPECT_FALSE(same_output("nan", "1.0"));
  EXPECT_FALSE(same_output("1.0abc", "1.0"));
}

TEST(SameOutput, SaysWhereTheDifferenceIs) {
  EXPECT_EQ(describe_difference("1\n5\n", "1\n4\n"),
            "wrong answer in line 2: expected \"4\", got \"5\"");
  EXPECT_THAT(describe_difference(std::string(1000, 'x'), "y"), HasSubstr("..."));
  EXPECT_EQ(describe_difference("1", "1"), "");
}

}  // namespace
}  // namespace antisd::inline reward
