// Splitting by hand-made examples; the recorded tokenizers cover the rest.
#include "text/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline text {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> split(const std::string& json, std::string_view text,
                               bool at_start = true) {
  const PreTokenizer pre_tokenizer =
      PreTokenizer::from_json(parse_sorted_json(json, "test"), "test");
  std::vector<std::string> pieces;
  pre_tokenizer.split(text, at_start, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

std::string split_json(const std::string& behavior, bool invert) {
  return R"({"type": "Split", "pattern": {"String": "-"}, "behavior": ")" + behavior +
         R"(", "invert": )" + (invert ? "true}" : "false}");
}

// The example of `tokenizers`' documentation of SplitDelimiterBehavior.
TEST(PreTokenizer, KnowsTheFiveBehaviors) {
  const std::string text = "the-final--countdown";
  EXPECT_THAT(split(split_json("Removed", false), text), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(split(split_json("Isolated", false), text),
              ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(split(split_json("MergedWithPrevious", false), text),
              ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(split(split_json("MergedWithNext", false), text),
              ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(split(split_json("Contiguous", false), text),
              ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(split(split_json("Removed", true), text), ElementsAre("-", "-", "-"));
}

TEST(PreTokenizer, Metaspace) {
  const auto json = [](const std::string& scheme, const std::string& splits) {
    return R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": ")" + scheme +
           R"(", "split": )" + splits + "}";
  };
  EXPECT_THAT(split(json("always", "true"), "a b  c"), ElementsAre("▁a", "▁b", "▁", "▁c"));
  EXPECT_THAT(split(json("always", "false"), "a b"), ElementsAre("▁a▁b"));
  EXPECT_THAT(split(json("first", "true"), "a b", true), ElementsAre("▁a", "▁b"));
  EXPECT_THAT(split(json("first", "true"), "a b", false), ElementsAre("a", "▁b"));
  EXPECT_THAT(split(json("never", "true"), "a b"), ElementsAre("a", "▁b"));
  EXPECT_THAT(split(R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false})", "a"),
              ElementsAre("a"));
}

TEST(PreTokenizer, ByteLevelSpellsBytesOutForAFurtherStep) {
  const std::string json = R"({"type": "Sequence", "pretokenizers": [
      {"type": "ByteLevel", "add_prefix_space": true, "use_regex": false},
      {"type": "Digits", "individual_digits": true}]})";
  EXPECT_THAT(split(json, "é12"), ElementsAre("ĠÃ©", "1", "2"));
}

TEST(PreTokenizer, WhitespaceKindsAndPunctuation) {
  EXPECT_THAT(split(R"({"type": "Whitespace"})", "a_1 +=b\u0301!"),
              ElementsAre("a_1", "+=", "b\u0301", "!"));
  EXPECT_THAT(split(R"({"type": "WhitespaceSplit"})", " a+\u3000b\n"), ElementsAre("a+", "b"));
  EXPECT_THAT(split(R"({"type": "Punctuation"})", "a,b。"), ElementsAre("a", ",", "b", "。"));
  EXPECT_THAT(split(R"({"type": "Digits", "individual_digits": false})", "a12½b"),
              ElementsAre("a", "12½", "b"));
}

TEST(PreTokenizer, IsBoundedInSteps) {
  std::string json = R"({"type": "Sequence", "pretokenizers": [)";
  for (int i = 0; i < 100; ++i)
    json += R"({"type": "Whitespace"},)";
  json.back() = ']';
  EXPECT_THAT(testing::error_of([&] { split(json + "}", "a"); }), ::testing::HasSubstr("64 steps"));
}

}  // namespace
}  // namespace antisd::inline text
