// From tokens to OpenAI's JSON: one object at the end, or server-sent events as the tokens come.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/http/response.h"
#include "serve/completion_request.h"
#include "serve/service.h"
#include "text/text_stream.h"

namespace antisd::inline serve {

class Answer : public Receiver {
 public:
  // `model` must outlive it.
  Answer(HttpStream stream, const CompletionRequest& request, Endpoint endpoint,
         const ServedModel& model);

  void token(int choice, ServedToken token) override;
  void ended(int choice, FinishReason reason) override;
  void failed(int status, const std::string& problem) override;
  bool is_gone() const override { return stream_.is_gone(); }

 private:
  struct Choice {
    std::vector<ServedToken> tokens;  // streaming: those not yet sent
    std::optional<TextStream> text;
    std::string waiting;       // text that may be the start of a stop string
    std::size_t sent = 0;      // bytes of text
    bool has_stopped = false;  // a stop string was found: no text after it
    bool has_begun = false;
    FinishReason reason = FinishReason::kStop;
  };

  void send_piece(int index, bool at_end);
  std::string release_text(Choice& choice, std::string piece, bool at_end) const;
  void send_chunk(const Json& choices, const Json& usage);
  Json piece_json(int index, const std::string& text, const Json& finish) const;
  Json whole_json(int index) const;
  Json logprobs_json(const Choice& choice, std::size_t text_offset) const;
  Json usage_json() const;
  Json frame(const char* object) const;
  std::string token_text(std::int32_t id) const;
  void finish();

  const HttpStream stream_;
  const Endpoint endpoint_;
  const ServedModel& model_;
  const bool streams_, include_usage_, logprobs_, token_ids_;
  const int top_logprobs_, samples_;
  const StopStrings stops_;
  std::size_t longest_stop_ = 0;
  const std::vector<std::vector<std::int32_t>> prompts_;  // empty unless their ids are asked for
  std::int64_t prompt_tokens_ = 0, new_tokens_ = 0;
  const std::string id_;
  const std::int64_t created_;
  std::vector<Choice> choices_;
  std::size_t unfinished_ = 0;
};

}  // namespace antisd::inline serve
