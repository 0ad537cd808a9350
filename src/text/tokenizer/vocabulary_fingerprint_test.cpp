#include "text/tokenizer/vocabulary_fingerprint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace antisd::inline text {
namespace {

Tokenizer words_of(const std::string& vocabulary, const std::string& splitter = "Whitespace") {
  return Tokenizer::from_json(fmt::format(R"({{"version":"1.0","added_tokens":[],"normalizer":null,
        "pre_tokenizer":{{"type":"{}"}},"post_processor":null,"decoder":null,
        "model":{{"type":"WordLevel","vocab":{{{}}},"unk_token":"a"}}}})",
                                          splitter, vocabulary),
                              "words");
}

TEST(VocabularyFingerprint, IsOfTokensAndTheirIdsAlone) {
  const Tokenizer first = words_of(R"("a":0,"b":1,"c":3)");
  EXPECT_EQ(vocabulary_fingerprint(first),
            vocabulary_fingerprint(words_of(R"("c":3,"b":1,"a":0)", "WhitespaceSplit")));
  for (const char* other : {R"("a":0,"c":1,"b":3)", R"("a":0,"b":1,"c":2)", R"("a":0,"b":1)",
                            R"("a":0,"b":1,"c":3,"d":4)", R"("a":0,"b":1,"cd":3)"})
    EXPECT_NE(vocabulary_fingerprint(first), vocabulary_fingerprint(words_of(other))) << other;
}

TEST(VocabularyFingerprint, TheFirstDifferenceIsNamed) {
  const Tokenizer first = words_of(R"("a":0,"b":1,"c":3)");
  const VocabularyDifference moved = first_difference(first, words_of(R"("a":0,"b":1,"c":2)"));
  EXPECT_EQ(moved.id, 2);
  EXPECT_EQ(moved.first, std::nullopt);
  EXPECT_EQ(moved.second, "c");
  EXPECT_EQ(first_difference(first, words_of(R"("a":0,"b":1)")).id, 3);
}

}  // namespace
}  // namespace antisd::inline text
