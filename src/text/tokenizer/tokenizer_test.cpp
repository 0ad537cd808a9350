// Ids and texts compared with those of PyPI `tokenizers` and transformers
// (tools/record_tokenizer_fixtures.py).
#include "text/tokenizer/tokenizer.h"

#include <fstream>
#include <thread>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/json.h"
#include "text/tokenizer/tokenizer_file.h"

namespace antisd::inline text {
namespace {

using ::testing::AllOf;
using testing::error_of;
using testing::fixture;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

Json read_fixture(const std::string& name) {
  return parse_json(read_text_file(fixture("text/" + name)), name);
}

std::vector<std::string> texts() {
  return read_fixture("texts.json").get<std::vector<std::string>>();
}

class RecordedTokenizer : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedTokenizer, GivesTheSameIdsAndTexts) {
  const Tokenizer tokenizer = Tokenizer::load(fixture("text/" + std::string(GetParam())));
  const Json rows = read_fixture(std::string(GetParam()) + "/expected.json");
  const std::vector<std::string> all = texts();
  ASSERT_EQ(rows.size(), all.size());
  ASSERT_GT(all.size(), 100u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& text = all[i];
    const Json& row = rows[i];
    const auto ids = row["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer.encode(text), ids) << i << ": " << text;
    EXPECT_EQ(tokenizer.encode(text, /*add_special_tokens=*/true), row.value("with_special", ids))
        << i << ": " << text;
    EXPECT_EQ(tokenizer.decode(ids), row.value("decoded", text)) << i;
    EXPECT_EQ(tokenizer.decode(ids, /*skip_special_tokens=*/true), row.value("decoded_plain", text))
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, RecordedTokenizer,
                         ::testing::Values("qwen", "qwen_files", "gpt2", "smol", "llama",
                                           "metaspace", "words"),
                         [](const auto& info) { return std::string(info.param); });

void expect_real_ids(const Tokenizer& tokenizer, const std::string& name) {
  const Json rows = read_fixture(name);
  const std::vector<std::string> all = texts();
  ASSERT_EQ(rows.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(all[i]), rows[i].get<std::vector<TokenId>>()) << i << ": " << all[i];
  }
}

void copy_files(const TemporaryFolder& folder,
                const std::vector<std::pair<std::string, std::string>>& files) {
  for (const auto& [from, to] : files) {
    std::filesystem::copy_file(testing::shared_data("models/" + from), folder / to);
  }
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(RealTokenizer, Qwen3) {
  ANTISD_NEEDS_SHARED(testing::shared_data("models/qwen/vocab.json"));
  const TemporaryFolder folder;
  copy_files(folder, {{"qwen/vocab.json", "vocab.json"},
                      {"qwen/merges.txt", "merges.txt"},
                      {"qwen/qwen3_tokenizer_config.json", "tokenizer_config.json"}});
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  expect_real_ids(tokenizer, "real_qwen3.json");
  EXPECT_EQ(tokenizer.vocabulary_size(), 151669);
  EXPECT_EQ(tokenizer.special_token_id("eos_token"), 151645);
  EXPECT_EQ(tokenizer.special_token_id("pad_token"), 151643);
  EXPECT_EQ(tokenizer.special_token_id("bos_token"), std::nullopt);
  EXPECT_EQ(tokenizer.token_to_id("</think>"), 151668);
  EXPECT_FALSE(tokenizer.is_special(151668));
  EXPECT_TRUE(tokenizer.is_special(151644));
}

TEST(RealTokenizer, Gpt2) {
  ANTISD_NEEDS_SHARED(testing::shared_data("models/gpt2/vocab.json"));
  const TemporaryFolder folder;
  copy_files(folder, {{"gpt2/vocab.json", "vocab.json"}, {"gpt2/merges.txt", "merges.txt"}});
  write(folder / "tokenizer_config.json", R"({"tokenizer_class": "GPT2TokenizerFast"})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  expect_real_ids(tokenizer, "real_gpt2.json");
  EXPECT_EQ(tokenizer.special_token_id("eos_token"), 50256);
}

TEST(RealTokenizer, Olmo3) {
  ANTISD_NEEDS_SHARED(testing::shared_data("models/olmo3/dolma2_tokenizer.json"));
  const TemporaryFolder folder;
  copy_files(folder, {{"olmo3/dolma2_tokenizer.json", "tokenizer.json"}});
  expect_real_ids(Tokenizer::load(folder.path()), "real_olmo3.json");
}

TEST(Tokenizer, EncodesFromManyThreadsAtOnce) {
  const Tokenizer first = Tokenizer::load(fixture("text/qwen"));
  const Tokenizer second = Tokenizer::load(fixture("text/llama"));
  const std::vector<std::string> all = texts();
  std::vector<std::vector<TokenId>> expected;
  for (const std::string& text : all) {
    expected.push_back(first.encode(text));
    expected.push_back(second.encode(text));
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        for (std::size_t i = 0; i < all.size(); ++i) {
          wrong += first.encode(all[i]) != expected[2 * i];
          wrong += second.encode(all[i]) != expected[2 * i + 1];
        }
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Tokenizer, RefusesInvalidTextAndIds) {
  const Tokenizer tokenizer = Tokenizer::load(fixture("text/qwen"));
  EXPECT_THAT(error_of([&] { tokenizer.encode("ab\xFFz"); }), HasSubstr("UTF-8 at byte 2"));
  const TokenId size = tokenizer.vocabulary_size();
  for (const TokenId id : {TokenId{-1}, size, INT32_MAX}) {
    EXPECT_THAT(error_of([&] { tokenizer.decode(std::vector<TokenId>{id}); }),
                AllOf(HasSubstr(std::to_string(id)), HasSubstr("not in the vocabulary")));
  }
  EXPECT_THAT(error_of([&] { tokenizer.id_to_token(size); }), HasSubstr("ids go from 0 to"));
}

TEST(Tokenizer, DecodesHalfACharacterAsReplacement) {
  const Tokenizer tokenizer = Tokenizer::load(fixture("text/qwen"));
  const auto ids = tokenizer.encode("\U0001F980");  // not in the corpus: four bytes, four ids
  ASSERT_EQ(ids.size(), 4u);
  EXPECT_EQ(tokenizer.decode(std::span(ids).first(3)), "\uFFFD");
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{ids[3], ids[0]}), "\uFFFD\uFFFD");
}

// A tokenizer.json with one part replaced.
std::string tokenizer_json(const std::string& key, const std::string& value) {
  std::map<std::string, std::string> parts = {
      {"added_tokens", "[]"},
      {"normalizer", "null"},
      {"pre_tokenizer", "null"},
      {"post_processor", "null"},
      {"decoder", "null"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})"}};
  parts[key] = value;
  std::string text = R"({"version": "1.0")";
  for (const auto& [name, part] : parts)
    text += ", \"" + name + "\": " + part;
  return text + "}";
}

TEST(Tokenizer, NamesWhatIsWrongInAFile) {
  EXPECT_EQ(Tokenizer::from_json(tokenizer_json("version", "\"1.0\""), "t").encode("abba"),
            (std::vector<TokenId>{2, 1, 0}));
  const struct {
    const char *key, *value, *message;
  } cases[] = {
      {"model", R"({"type": "Unigram", "vocab": [["a", 0.5]]})", "Unigram"},
      {"model", R"({"type": "WordPiece", "unk_token": "x", "vocab": {"a": 0}})", "WordPiece"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []})", "same id 0"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []})", "two ids"},
      {"model", R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})", "the id -1"},
      {"model", R"({"type": "BPE", "vocab": {"a": 99999999999999999999}, "merges": []})", "number"},
      {"model", R"({"type": "BPE", "vocab": {"a": 1e300}, "merges": []})", "whole number"},
      {"model", R"({"type": "BPE", "vocab": {"a": 18446744073709551615}, "merges": []})", "the id"},
      {"model", R"({"type": "BPE", "vocab": {"a": 1000000000}, "merges": []})", "ids go from 0"},
      {"model", R"({"type": "BPE", "vocab": {"a": {}}, "merges": []})", "the id of the token"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]})",
       "needs the token \"aa\""},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]})", "not two tokens"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]})", "1 parts"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [7]})", "holds number"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1})", "dropout"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "u"})",
       "unk_token"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "w"})",
       "end_of_word_suffix"},
      {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "novel": 1})", "novel"},
      {"model", "7", "expected an object"},
      {"normalizer", R"({"type": "Nmt"})", "normalizer Nmt"},
      {"normalizer", R"({"type": "NFC", "x": 1})", "option \"x\""},
      {"normalizer", R"({"type": "Replace", "pattern": {"Regex": "("}, "content": ""})",
       "not valid"},
      {"normalizer", R"({"type": "Replace", "pattern": {"Regex": "\\h"}, "content": ""})", "\\h"},
      {"pre_tokenizer", R"({"type": "BertPreTokenizer"})", "BertPreTokenizer"},
      {"pre_tokenizer", R"({"type": "Split", "pattern": {"String": "x"}, "behavior": "Cut"})",
       "Cut"},
      {"pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [{"type": "Odd"}]})",
       "pre_tokenizer.pretokenizers[0]"},
      {"decoder", R"({"type": "CTC"})", "decoder CTC"},
      {"post_processor", R"({"type": "Odd"})", "post-processor Odd"},
      {"post_processor", R"({"type": "BertProcessing", "sep": ["s", 3], "cls": ["c", 0]})", "id 3"},
      {"added_tokens", R"([{"id": 7, "content": "<x>"}])", "makes it 3"},
      {"added_tokens", R"([{"id": 3, "content": ""}])", "0 bytes"},
      {"added_tokens", R"([{"id": 3}])", "\"content\" is missing"},
      {"surprise", "1", "surprise"},
  };
  for (const auto& [key, value, message] : cases) {
    const std::string text = tokenizer_json(key, value);
    EXPECT_THAT(error_of([&] { Tokenizer::from_json(text, "some.json"); }),
                AllOf(HasSubstr("some.json"), HasSubstr(message)))
        << text;
  }
}

TEST(Tokenizer, RefusesEveryTruncatedFile) {
  const std::string text = read_text_file(fixture("text/words/tokenizer.json"));
  for (std::size_t length = 0; length + 2 < text.size(); length += 7) {
    EXPECT_THAT(error_of([&] { Tokenizer::from_json(text.substr(0, length), "cut.json"); }),
                HasSubstr("cut.json"));
  }
}

TEST(Tokenizer, ChecksTheDirectory) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }),
              HasSubstr("neither tokenizer.json"));
  write(folder / "vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }),
              AllOf(HasSubstr("tokenizer_class"), HasSubstr("Qwen2Tokenizer")));
  write(folder / "tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer"})");
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }),
              AllOf(HasSubstr("T5Tokenizer"), HasSubstr("GPT2Tokenizer")));
  write(folder / "tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }), HasSubstr("merges.txt"));
  write(folder / "merges.txt", "#version: 0.2\na b\na b b\n");
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }), HasSubstr("merge 3"));
  write(folder / "merges.txt", "#version: 0.2\na b\n");
  EXPECT_EQ(Tokenizer::load(folder.path()).special_token_id("eos_token"), 3);
}

TEST(Tokenizer, ASpecialTokenThatIsMissingIsAnErrorWhenAskedFor) {
  const TemporaryFolder folder;
  write(folder / "tokenizer.json", tokenizer_json("version", "\"1.0\""));
  write(folder / "tokenizer_config.json",
        R"({"eos_token": "<end>", "pad_token": {"content": "b"}})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.special_tokens().at("eos_token"), "<end>");
  EXPECT_EQ(tokenizer.special_token_id("pad_token"), 1);
  EXPECT_THAT(error_of([&] { tokenizer.special_token_id("eos_token"); }),
              AllOf(HasSubstr("<end>"), HasSubstr("tokenizer_config.json")));
}

}  // namespace
}  // namespace antisd::inline text
