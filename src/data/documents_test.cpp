#include "data/documents.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "data/countdown_tokenizer.h"
#include "data/file_documents.h"
#include "io/atomic_file.h"

namespace antisd::inline data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DocumentText task_text() {
  const testing::TemporaryFolder folder;
  for (const auto& [name, text] : countdown_tokenizer_files())
    write_file_atomically(folder / name, text);
  DocumentText text{.tokenizer = Tokenizer::load(folder.path()),
                    .chat = ChatTemplate::load(folder.path()),
                    .chat_options = {},
                    .end = {}};
  text.end = text.tokenizer.special_token_id("eos_token");
  return text;
}

const auto kSilent = [](const std::string&) {};

TEST(CountdownTokenizer, IsTransformers) {
  const Json recorded = Json::parse(read_file(testing::fixture("data/countdown_ids.json")));
  const DocumentText text = task_text();
  EXPECT_EQ(text.tokenizer.vocabulary_size(), recorded["size"]);
  EXPECT_EQ(text.end, recorded["eos"].get<TokenId>());
  for (const Json& row : recorded["rows"]) {
    const std::vector<TokenId> ids = text.tokenizer.encode(row["text"].get<std::string>());
    EXPECT_EQ(ids, row["ids"].get<std::vector<TokenId>>()) << row["text"];
    EXPECT_EQ(text.tokenizer.decode(ids), row["decoded"]);
    EXPECT_EQ(text.tokenizer.decode(ids, true), row["plain"]);
  }
  EXPECT_EQ(text.chat->render({{"messages", recorded["chat"]["messages"]}}),
            recorded["chat"]["text"]);
}

TEST(ChatEncoder, MarksWhatTransformersMarks) {
  const Json recorded = Json::parse(read_file(testing::fixture("data/chat_masks.json")));
  const ChatEncoder chats(Tokenizer::load(testing::fixture("text/qwen")),
                          ChatTemplate(recorded["template"].get<std::string>()), {});
  for (const Json& chat : recorded["chats"]) {
    const TrainingDocument document = chats.encode(chat["messages"]);
    std::vector<TokenId> ids = chat["ids"];
    std::vector<int> mask = chat["mask"];
    // Tokens after the assistant's last turn are dropped.
    ASSERT_LE(document.ids.size(), ids.size());
    EXPECT_EQ(std::count(mask.begin() + std::ptrdiff_t(document.ids.size()), mask.end(), 1), 0);
    ids.resize(document.ids.size());
    mask.resize(document.ids.size());
    EXPECT_EQ(document.ids, ids) << chat;
    EXPECT_EQ(std::vector<int>(document.counts.begin(), document.counts.end()), mask) << chat;
  }
}

TEST(ChatEncoder, RefusesWhatItCannotTell) {
  const DocumentText text = task_text();
  const Json chat = Json::parse(R"([{"role":"user","content":"Solve |"},
    {"role":"assistant","content":"no"},{"role":"user","content":"Wait"},
    {"role":"assistant","content":"boxed 29"}])");
  const auto error = [&](const std::string& source, const Json& messages) {
    return testing::error_of(
        [&] { ChatEncoder(text.tokenizer, ChatTemplate(source), {}).encode(messages); });
  };
  // Shortens a turn when another follows, like templates that drop reasoning.
  EXPECT_THAT(
      error("{% for m in messages %}{{ m.content if loop.last else 'x' }} {% endfor %}", chat),
      HasSubstr("turn 2 differently once others follow"));
  const std::string plain = "{% for m in messages %}{{ m.content }} {% endfor %}";
  EXPECT_THAT(error(plain, Json::array({chat[0]})), HasSubstr("no assistant turn"));
  EXPECT_THAT(error(plain, Json::parse(R"([{"role":"user"}])")), HasSubstr("not a list of"));
  EXPECT_THAT(error(plain, "text"), HasSubstr("not a list of"));
  // Both turns are in the loss, the words between them are not.
  const TrainingDocument document = ChatEncoder(text.tokenizer, *text.chat, {}).encode(chat);
  EXPECT_EQ(text.tokenizer.decode(document.ids), "Solve | no [EOS] Wait boxed 29 [EOS]");
  EXPECT_THAT(document.counts, ElementsAre(false, false, true, true, false, true, true, true));
  EXPECT_EQ(document.prompt_tokens(), 2u);
}

TEST(Documents, TextIsCutIntoPieces) {
  const testing::TemporaryFolder folder;
  write_file_atomically(folder / "a.txt", "Let 4 + 11 = 15 no Wait");
  write_file_atomically(folder / "b.jsonl", "{\"text\":\"So boxed 1\"}\n{\"text\":\"no\"}\n");
  const DocumentText text = task_text();
  std::string heard;
  const std::vector<TrainingDocument> pieces =
      read_documents({(folder / "a.txt").string(), (folder / "b.jsonl").string()}, text, 5,
                     [&](const std::string& line) { heard = line; });
  EXPECT_EQ(heard, "3 documents of text in 3 pieces");
  std::vector<std::string> texts;
  for (const TrainingDocument& piece : pieces) {
    texts.push_back(text.tokenizer.decode(piece.ids));
    EXPECT_FALSE(piece.counts[0]);
    EXPECT_EQ(piece.tokens_that_count(), piece.ids.size() - 1);
  }
  EXPECT_THAT(texts, ElementsAre("Let 4 + 11 =", "15 no Wait [EOS] So", "boxed 1 [EOS] no [EOS]"));
  write_file_atomically(folder / "c.jsonl",
                        R"({"messages":[{"role":"assistant","content":"So boxed 29 So boxed"}]})"
                        "\n");
  EXPECT_THAT(testing::error_of([&] {
                read_documents({(folder / "a.txt").string(), (folder / "c.jsonl").string()}, text,
                               64, kSilent);
              }),
              HasSubstr("chats after files of text"));
  EXPECT_THAT(
      testing::error_of([&] { read_documents({(folder / "c.jsonl").string()}, text, 5, kSilent); }),
      HasSubstr("no document is left"));
}

TEST(Documents, ABatchIsAFunctionOfItsStep) {
  const testing::TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 7; ++i)
    rows += fmt::format("{{\"messages\":[{{\"role\":\"assistant\",\"content\":\"{} 0\"}}]}}\n", i);
  write_file_atomically(folder / "c.jsonl", rows);
  const DocumentText text = task_text();
  for (const std::string& source : {std::string("countdown:3+4"), (folder / "c.jsonl").string()}) {
    const DocumentOptions options{.sources = {source}, .mix = {}, .per_step = 5, .seed = 3};
    const auto one = make_documents(options, text, kSilent),
               other = make_documents(options, text, kSilent);
    const auto ids = [](const std::vector<TrainingDocument>& batch) {
      std::vector<std::vector<TokenId>> all;
      for (const TrainingDocument& document : batch)
        all.push_back(document.ids);
      return all;
    };
    const auto late = ids(one->batch(9));
    EXPECT_EQ(one->fingerprint(), other->fingerprint());
    DocumentsAhead ahead(*other, 2, 10);
    std::vector<std::vector<TokenId>> last;
    for (int step = 2; step < 10; ++step)
      last = ids(ahead.next());
    EXPECT_EQ(last, late);
    EXPECT_NE(ids(one->batch(8)), late);
  }
}

TEST(Documents, OfTheTask) {
  const DocumentText text = task_text();
  const DocumentOptions options{.sources = {"countdown:4"}, .mix = {}, .per_step = 40, .seed = 3};
  for (const TrainingDocument& document : make_documents(options, text, kSilent)->batch(0)) {
    const std::string whole = text.tokenizer.decode(document.ids);
    EXPECT_THAT(whole, ::testing::StartsWith(document.prompt + " Let "));
    EXPECT_THAT(whole, ::testing::EndsWith(" [EOS]"));
    EXPECT_EQ(whole.find("[UNK]"), std::string::npos);
    const std::size_t prompt = document.prompt_tokens();
    EXPECT_EQ(text.tokenizer.decode(std::span(document.ids).first(prompt)), document.prompt);
    EXPECT_EQ(document.tokens_that_count(), document.ids.size() - prompt);
    EXPECT_EQ(document.bench, "countdown-4");
  }
  EXPECT_EQ(held_out_documents(options, {}, 11, text, kSilent).size(), 11u);
}

}  // namespace
}  // namespace antisd::inline data
