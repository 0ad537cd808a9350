#include "serve/answer.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "serve/api_error.h"
#include "serve/random_bits.h"

namespace antisd::inline serve {
namespace {

constexpr std::string_view kReplaced = "\xEF\xBF\xBD";

const char* finish_name(FinishReason reason) {
  return reason == FinishReason::kStop ? "stop" : "length";
}

Json bytes_of(const std::string& text) {
  // A token that is a part of a character: its bytes are not known from its text.
  if (text.find(kReplaced) != std::string::npos) return nullptr;
  Json bytes = Json::array();
  for (const char byte : text)
    bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

}  // namespace

Answer::Answer(HttpStream stream, const CompletionRequest& request, Endpoint endpoint,
               const ServedModel& model)
    : stream_(std::move(stream)),
      endpoint_(endpoint),
      model_(model),
      streams_(request.stream),
      include_usage_(request.include_usage),
      logprobs_(request.logprobs),
      token_ids_(request.token_ids),
      top_logprobs_(request.top_logprobs),
      samples_(request.samples),
      stops_(request.stop),
      prompts_(request.token_ids ? request.prompts : std::vector<std::vector<std::int32_t>>()),
      id_(fmt::format("{}-{:016x}", endpoint == Endpoint::kChat ? "chatcmpl" : "cmpl",
                      random_bits())),
      created_(std::time(nullptr)),
      choices_(request.prompts.size() * static_cast<std::size_t>(request.samples)),
      unfinished_(choices_.size()) {
  for (const std::string& stop : request.stop)
    longest_stop_ = std::max(longest_stop_, stop.size());
  for (const auto& prompt : request.prompts)
    prompt_tokens_ += std::ssize(prompt);
  for (Choice& choice : choices_)
    if (streams_ && model.tokenizer()) choice.text.emplace(*model.tokenizer());
}

void Answer::token(int index, ServedToken token) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  const std::int32_t id = token.id;
  choice.tokens.push_back(std::move(token));
  ++new_tokens_;
  if (!streams_) return;
  if (choice.text) choice.waiting += choice.text->add(id);
  send_piece(index, /*at_end=*/false);
}

void Answer::ended(int index, FinishReason reason) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  choice.reason = reason;
  if (streams_) {
    if (choice.text) choice.waiting += choice.text->finish();
    send_piece(index, /*at_end=*/true);
  }
  if (--unfinished_ == 0) finish();
}

void Answer::failed(int status, const std::string& problem) {
  const ApiError error(status, problem);
  const bool has_begun = std::any_of(choices_.begin(), choices_.end(),
                                     [](const Choice& choice) { return choice.has_begun; });
  if (!has_begun) return stream_.answer(error.response());
  stream_.write(fmt::format("data: {}\n\n", to_json_line(error.json())));
  stream_.finish();
}

// What can be shown of the text that waits: not the start of what may become a stop string, nor a
// part of a character, and nothing from a stop string on.
std::string Answer::release_text(Choice& choice, std::string text, bool at_end) const {
  if (choice.has_stopped) return "";
  if (stops_.empty()) return text;
  if (const auto at = stops_.find(text)) {
    choice.has_stopped = true;
    return text.substr(0, *at);
  }
  if (at_end) return text;
  std::size_t shown = text.size() - std::min(text.size(), longest_stop_ - 1);
  while (shown > 0 && (static_cast<unsigned char>(text[shown]) & 0xC0) == 0x80)
    --shown;
  choice.waiting = text.substr(shown);
  return text.substr(0, shown);
}

void Answer::send_piece(int index, bool at_end) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  const std::string text = release_text(choice, std::exchange(choice.waiting, {}), at_end);
  const bool is_chat = endpoint_ == Endpoint::kChat;
  if (is_chat && !choice.has_begun) {
    send_chunk(Json::array({{{"index", index},
                             {"delta", {{"role", "assistant"}, {"content", ""}}},
                             {"logprobs", nullptr},
                             {"finish_reason", nullptr}}}),
               nullptr);
  }
  choice.has_begun = true;
  if (text.empty() && !at_end && !token_ids_) return;
  // A chat's last chunk has an empty delta.
  if (is_chat && at_end && (!text.empty() || !choice.tokens.empty())) {
    send_chunk(Json::array({piece_json(index, text, nullptr)}), nullptr);
    choice.tokens.clear();
    send_chunk(Json::array({piece_json(index, "", finish_name(choice.reason))}), nullptr);
  } else {
    const Json finish = at_end ? Json(finish_name(choice.reason)) : Json();
    send_chunk(Json::array({piece_json(index, text, finish)}), nullptr);
  }
  choice.sent += text.size();
  choice.tokens.clear();
}

void Answer::send_chunk(const Json& choices, const Json& usage) {
  Json chunk = frame(endpoint_ == Endpoint::kChat ? "chat.completion.chunk" : "text_completion");
  chunk["choices"] = choices;
  if (include_usage_) chunk["usage"] = usage;
  stream_.write(fmt::format("data: {}\n\n", to_json_line(chunk)));
}

Json Answer::frame(const char* object) const {
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", model_.name()}};
}

Json Answer::usage_json() const {
  return {{"prompt_tokens", prompt_tokens_},
          {"completion_tokens", new_tokens_},
          {"total_tokens", prompt_tokens_ + new_tokens_}};
}

std::string Answer::token_text(std::int32_t id) const {
  const auto& tokenizer = model_.tokenizer();
  if (!tokenizer || id >= tokenizer->vocabulary_size()) return "";
  return tokenizer->decode({&id, 1});
}

Json Answer::logprobs_json(const Choice& choice, std::size_t text_offset) const {
  if (!logprobs_) return nullptr;
  if (endpoint_ == Endpoint::kChat) {
    Json content = Json::array();
    const auto entry = [this](std::int32_t id, float logp) -> Json {
      const std::string text = token_text(id);
      return {{"token", text}, {"logprob", logp}, {"bytes", bytes_of(text)}};
    };
    for (const ServedToken& token : choice.tokens) {
      Json row = entry(token.id, token.logp);
      row["top_logprobs"] = Json::array();
      for (const Alternative& other : token.alternatives)
        row["top_logprobs"].push_back(entry(other.id, other.raw_logp));
      content.push_back(std::move(row));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
  }
  Json out = {{"tokens", Json::array()},
              {"token_logprobs", Json::array()},
              {"top_logprobs", top_logprobs_ > 0 ? Json::array() : Json()},
              {"text_offset", Json::array()}};
  for (const ServedToken& token : choice.tokens) {
    const std::string text = token_text(token.id);
    out["tokens"].push_back(text);
    out["token_logprobs"].push_back(token.logp);
    out["text_offset"].push_back(text_offset);
    text_offset += text.size();
    if (top_logprobs_ == 0) continue;
    Json top = Json::object();
    for (const Alternative& other : token.alternatives)
      top[token_text(other.id)] = other.raw_logp;
    top[text] = token.logp;  // the sampled one too
    out["top_logprobs"].push_back(std::move(top));
  }
  return out;
}

Json Answer::piece_json(int index, const std::string& text, const Json& finish) const {
  const Choice& choice = choices_[static_cast<std::size_t>(index)];
  const bool is_chat = endpoint_ == Endpoint::kChat;
  Json piece = {{"index", index}};
  if (is_chat) {
    piece["delta"] = text.empty() && !finish.is_null() ? Json::object() : Json{{"content", text}};
  } else {
    piece["text"] = text;
  }
  const bool has_logprobs = logprobs_ && !choice.tokens.empty();
  piece["logprobs"] = has_logprobs ? logprobs_json(choice, choice.sent) : Json();
  piece["finish_reason"] = finish;
  if (token_ids_) {
    piece["token_ids"] = Json::array();
    for (const ServedToken& token : choice.tokens)
      piece["token_ids"].push_back(token.id);
  }
  return piece;
}

Json Answer::whole_json(int index) const {
  const Choice& choice = choices_[static_cast<std::size_t>(index)];
  std::vector<std::int32_t> ids;
  for (const ServedToken& token : choice.tokens)
    ids.push_back(token.id);
  std::string text;
  if (model_.tokenizer()) text = readable_text(*model_.tokenizer(), ids);
  if (const auto at = stops_.find(text)) text.resize(*at);
  Json out = {{"index", index}};
  if (endpoint_ == Endpoint::kChat) {
    out["message"] = {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}};
  } else {
    out["text"] = text;
  }
  out["logprobs"] = logprobs_json(choice, 0);
  out["finish_reason"] = finish_name(choice.reason);
  if (token_ids_) {
    out["token_ids"] = ids;
    out["prompt_token_ids"] = prompts_[static_cast<std::size_t>(index / samples_)];
  }
  return out;
}

void Answer::finish() {
  if (streams_) {
    if (include_usage_) send_chunk(Json::array(), usage_json());
    stream_.write("data: [DONE]\n\n");
    return stream_.finish();
  }
  Json body = frame(endpoint_ == Endpoint::kChat ? "chat.completion" : "text_completion");
  body["choices"] = Json::array();
  for (int index = 0; index < static_cast<int>(choices_.size()); ++index)
    body["choices"].push_back(whole_json(index));
  body["usage"] = usage_json();
  stream_.answer({.type = "application/json", .body = to_json_line(body)});
}

}  // namespace antisd::inline serve
