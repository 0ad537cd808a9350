#include "report/inspect/token_text.h"

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The bytes that a text with \xHH escapes stands for.
std::string unescaped(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "\\x") == 0) {
      bytes += static_cast<char>(std::stoi(text.substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

TEST(TokenText, NothingIsLostWhereCharactersAreSpreadOverTokens) {
  const std::string text = "Wait, \u4E2D\u6587 \U0001F642 caf\u00E9\n  x = 10";
  for (const char* name : {"qwen", "gpt2", "llama", "smol"}) {
    const Tokenizer tokenizer = Tokenizer::load(testing::fixture(std::string("text/") + name));
    const std::vector<TokenId> ids = tokenizer.encode(text);
    const std::vector<std::string> texts = token_texts(tokenizer, ids);
    ASSERT_EQ(texts.size(), ids.size());
    std::string all;
    for (const std::string& token : texts)
      all += unescaped(token);
    EXPECT_EQ(all, text) << name;
  }
}

TEST(TokenText, HalfACharacterIsAnEscapeAndNeverAReplacementCharacter) {
  const Tokenizer tokenizer = Tokenizer::load(testing::fixture("text/qwen"));
  const std::vector<TokenId> ids = tokenizer.encode("\U0001F642");
  ASSERT_GT(ids.size(), 1u);  // otherwise this tests nothing
  const std::vector<std::string> texts = token_texts(tokenizer, ids);
  EXPECT_THAT(texts.front(), HasSubstr("\\xF0"));
  for (std::size_t i = 0; i < ids.size(); ++i)
    EXPECT_EQ(token_name(tokenizer, ids[i]), texts[i]);
}

TEST(TokenText, WordsOfAWordLevelVocabularyHaveTheirBlanks) {
  const Tokenizer tokenizer = Tokenizer::from_json(
      R"({"version":"1.0","added_tokens":[{"id":2,"content":"[END]","single_word":false,"lstrip":false,
      "rstrip":false,"normalized":false,"special":true}],"normalizer":null,
      "pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":null,"decoder":null,
      "model":{"type":"WordLevel","vocab":{"Wait":0,"4":1,"[END]":2,"?":3},"unk_token":"?"}})",
      "words");
  const std::vector<TokenId> ids = {0, 1, 2, 99, 0};
  EXPECT_THAT(token_texts(tokenizer, ids), ElementsAre("Wait", " 4", " [END]", "<id 99>", " Wait"));
  EXPECT_THAT(token_texts(tokenizer, {ids.data(), 1}, /*before=*/3), ElementsAre(" Wait"));
  EXPECT_EQ(token_name(tokenizer, 0), "Wait");
  EXPECT_EQ(token_name(tokenizer, 99), "<id 99>");
  EXPECT_TRUE(token_texts(tokenizer, {}).empty());
}

TEST(TokenText, ATokenAloneKeepsItsBlank) {
  const Tokenizer tokenizer = Tokenizer::load(testing::fixture("text/qwen"));
  const std::vector<TokenId> ids = tokenizer.encode("a a");
  EXPECT_EQ(token_name(tokenizer, ids.front()), "a");
  EXPECT_EQ(token_name(tokenizer, ids.back()).back(), 'a');
  const Tokenizer metaspace = Tokenizer::load(testing::fixture("text/metaspace"));
  const std::vector<TokenId> words = metaspace.encode("the the");
  EXPECT_EQ(token_name(metaspace, words.back()).find("\u2581"), std::string::npos);
}

TEST(TokenText, NoTextCanReachATerminalsControls) {
  EXPECT_EQ(escape_controls("a\033[2Jb\r\n\t\x7F"), "a\\x1B[2Jb\\x0D\\n\\t\\x7F");
  EXPECT_EQ(escape_controls("\u009B\u202E\u00E9"), "\\x9B\\u202E\u00E9");
  EXPECT_EQ(escape_ill_formed("a\xE4\xB8z\xFF"), "a\\xE4\\xB8z\\xFF");
}

}  // namespace
}  // namespace antisd::inline report
