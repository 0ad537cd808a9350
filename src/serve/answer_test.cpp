// Answers from given tokens, over a stream that records what a client would get; requests from
// given JSON. No weights are needed.
#include "serve/answer.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "serve/api_error.h"

namespace antisd::inline serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What was written, and whether the client is still there.
struct RecordedSink : HttpStream::Sink {
  bool write(std::string_view bytes) override { return text += bytes, !gone; }
  void finish(bool whole) override { finished = whole; }
  void answer(HttpResponse response) override { whole = std::move(response); }
  bool is_gone() override { return gone; }

  std::string text;
  bool finished = false, gone = false;
  std::optional<HttpResponse> whole;

  // The events' data.
  std::vector<Json> events() const {
    std::vector<Json> events;
    constexpr std::string_view kMark = "data: ";
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find("\n\n", at);
      const std::string data = text.substr(at + kMark.size(), end - at - kMark.size());
      if (data != "[DONE]") events.push_back(Json::parse(data));
      at = end + 2;
    }
    return events;
  }
};

class AnswerTest : public ::testing::Test {
 protected:
  CompletionRequest read(const Json& body, Endpoint endpoint = Endpoint::kCompletions) const {
    return read_completion_request(body, endpoint, model_);
  }
  // The status and parameter of the refusal.
  std::pair<int, Json> refusal(const Json& body, Endpoint endpoint = Endpoint::kCompletions) const {
    try {
      read(body, endpoint);
    } catch (const ApiError& error) {
      return {error.status(), error.json()["error"]["param"]};
    }
    ADD_FAILURE() << body.dump() << " was taken";
    return {};
  }
  Answer answer_to(const Json& body, Endpoint endpoint = Endpoint::kCompletions) {
    sink_ = std::make_shared<RecordedSink>();
    return Answer(HttpStream(sink_), read(body, endpoint), endpoint, model_);
  }
  std::vector<std::int32_t> ids_of(const std::string& text) const {
    return model_.tokenizer()->encode(text);
  }

  const ServedModel model_{std::filesystem::path(ANTISD_SOURCE_DIR) / "models/countdown", "m"};
  std::shared_ptr<RecordedSink> sink_;
};

TEST_F(AnswerTest, TextThatMayBecomeAStopStringWaits) {
  const std::vector<std::int32_t> ids = ids_of("1 2 3 4 5 6");
  const std::string whole = readable_text(*model_.tokenizer(), ids);
  const std::string stop = whole.substr(whole.size() / 2, 4);
  ASSERT_NE(whole.find(stop), std::string::npos);
  for (const bool ends_with_stop : {true, false}) {
    // Not the stop string, but its beginning, until the last character.
    const std::string given = ends_with_stop ? stop : stop.substr(0, 3) + "#";
    Answer answer = answer_to({{"prompt", "1"}, {"stop", given}, {"stream", true}});
    for (const std::int32_t id : ids) {
      answer.token(0, {.id = id});
      std::string shown;
      for (const Json& event : sink_->events())
        shown += event["choices"][0]["text"].get<std::string>();
      EXPECT_EQ(whole.substr(0, shown.size()), shown);
      EXPECT_LE(shown.size(), ends_with_stop ? whole.find(stop) : whole.size());
    }
    answer.ended(0, FinishReason::kStop);
    std::string shown;
    for (const Json& event : sink_->events())
      shown += event["choices"][0]["text"].get<std::string>();
    EXPECT_EQ(shown, ends_with_stop ? whole.substr(0, whole.find(stop)) : whole);
    EXPECT_EQ(sink_->events().back()["choices"][0]["finish_reason"], "stop");
    EXPECT_TRUE(sink_->finished);
    EXPECT_TRUE(sink_->text.ends_with("data: [DONE]\n\n"));
  }
}

TEST_F(AnswerTest, WholeAnswersAndFailures) {
  const std::vector<std::int32_t> ids = ids_of("7 8");
  Answer answer = answer_to({{"prompt", {{1, 2}, {3}}}, {"n", 2}, {"logprobs", 1}});
  for (const int choice : {2, 0, 3, 1}) {  // in any order
    answer.token(choice, {.id = ids[0], .logp = -1, .alternatives = {{ids[1], -0.5}}});
    EXPECT_FALSE(sink_->whole);
    answer.ended(choice, choice == 2 ? FinishReason::kStop : FinishReason::kLength);
  }
  ASSERT_TRUE(sink_->whole);
  const Json body = Json::parse(sink_->whole->body);
  ASSERT_EQ(body["choices"].size(), 4u);
  EXPECT_EQ(body["choices"][2]["finish_reason"], "stop");
  EXPECT_EQ(body["choices"][3]["finish_reason"], "length");
  EXPECT_EQ(body["choices"][0]["logprobs"]["token_logprobs"], Json::array({-1.0}));
  EXPECT_EQ(body["choices"][0]["logprobs"]["top_logprobs"][0].size(), 2u);
  EXPECT_EQ(body["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(body["usage"]["completion_tokens"], 4);

  Answer failing = answer_to({{"prompt", "1"}, {"stream", true}});
  failing.failed(500, "it broke");
  EXPECT_EQ(sink_->whole->status, 500) << "before the first piece it is a plain error";
  Answer half = answer_to({{"prompt", "1"}, {"stream", true}});
  half.token(0, {.id = ids[0]});
  half.failed(503, "it stops");
  EXPECT_EQ(sink_->events().back()["error"]["message"], "it stops");
  EXPECT_THAT(sink_->text, ::testing::Not(HasSubstr("[DONE]"))) << "a part is not the whole";
}

TEST_F(AnswerTest, WhatARequestMaySay) {
  const CompletionRequest plain = read({{"prompt", "1 2"}});
  EXPECT_EQ(plain.prompts, (std::vector<std::vector<std::int32_t>>{model_.encode("1 2")}));
  EXPECT_EQ(plain.max_tokens, 16);
  EXPECT_EQ(plain.sampling, SamplingSettings{});
  EXPECT_FALSE(plain.seed || plain.stream || plain.logprobs);
  const CompletionRequest ids =
      read({{"prompt", {5, 6}}, {"seed", 7}, {"top_k", -1}, {"stop", "x"}});
  EXPECT_THAT(ids.prompts, ElementsAre(ElementsAre(5, 6)));
  EXPECT_EQ(ids.seed, 7u);
  EXPECT_THAT(ids.stop, ElementsAre("x"));
  const Json messages = Json::array({{{"role", "user"}, {"content", "1"}}});
  const CompletionRequest chat = read(
      {{"messages", messages}, {"max_tokens", 3}, {"max_completion_tokens", 9}, {"n", nullptr}},
      Endpoint::kChat);
  EXPECT_EQ(chat.max_tokens, 9);
  EXPECT_EQ(read({{"messages", messages}}, Endpoint::kChat).max_tokens, 0) << "the context";
}

TEST_F(AnswerTest, WhatIsRefusedByName) {
  using Refusal = std::pair<int, Json>;
  EXPECT_EQ(refusal(Json::array()), Refusal(400, nullptr));
  EXPECT_EQ(refusal(Json::object()), Refusal(400, "prompt"));
  EXPECT_EQ(refusal({{"prompt", "1"}, {"model", "other"}}), Refusal(404, "model"));
  EXPECT_EQ(refusal({{"prompt", "1"}, {"n", 1.5}}), Refusal(400, "n"));
  EXPECT_EQ(refusal({{"prompt", "1"}, {"seed", std::uint64_t{1} << 63}}), Refusal(400, "seed"));
  EXPECT_EQ(refusal({{"prompt", "1"}, {"max_tokens", "9"}}), Refusal(400, "max_tokens"));
  EXPECT_EQ(refusal({{"prompt", "1"}, {"repetition_penalty", 1.1}}),
            Refusal(400, "repetition_penalty"));
  EXPECT_EQ(refusal({{"prompt", "1"}, {"messages", Json::array()}}), Refusal(400, "messages"));
  EXPECT_EQ(refusal({{"prompt", {1, -1}}}), Refusal(400, "prompt"));
  EXPECT_EQ(refusal({{"prompt", {1, 1e99}}}), Refusal(400, "prompt"));
  EXPECT_THROW(read({{"prompt", "1"}, {"top_p", 0}}), InputError);
  EXPECT_THAT(testing::error_of([&] {
                read({{"prompt", "1"}, {"temperature", -1}});
              }),
              HasSubstr("temperature"));
}

}  // namespace
}  // namespace antisd::inline serve
