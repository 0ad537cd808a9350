#include "serve/completion_request.h"

#include <limits>

#include <fmt/format.h>

#include "core/error.h"
#include "serve/api_error.h"
#include "serve/request_fields.h"

namespace antisd::inline serve {
namespace {

constexpr std::int64_t kMostSamples = 128, kMostPrompts = 1024, kMostAlternatives = 20;
constexpr std::size_t kMostStops = 16;
constexpr std::int64_t kUsualCompletion = 16;  // tokens, as in OpenAI's interface

std::vector<std::int32_t> token_ids(const Json& list) {
  std::vector<std::int32_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<std::int32_t>::max())
      throw ApiError(400, fmt::format("a prompt of ids holds {}", id.dump()), "prompt");
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

// A text, ids, or a list of either.
std::vector<std::vector<std::int32_t>> read_prompts(const Json* prompt, const ServedModel& model) {
  if (prompt == nullptr) throw ApiError(400, "there is no 'prompt'", "prompt");
  if (prompt->is_string()) return {model.encode(prompt->get<std::string>())};
  if (!prompt->is_array() || prompt->empty()) {
    throw ApiError(400, "'prompt' is no text, no list of texts, no token ids and no list of these",
                   "prompt");
  }
  if (prompt->front().is_number()) return {token_ids(*prompt)};
  if (prompt->size() > static_cast<std::size_t>(kMostPrompts))
    throw ApiError(400, fmt::format("more than {} prompts in a request", kMostPrompts), "prompt");
  std::vector<std::vector<std::int32_t>> prompts;
  for (const Json& each : *prompt) {
    if (!each.is_string() && !each.is_array())
      throw ApiError(400, "a prompt of the list is neither a text nor token ids", "prompt");
    prompts.push_back(each.is_string() ? model.encode(each.get<std::string>()) : token_ids(each));
  }
  return prompts;
}

// Contents given as parts: texts are joined, since few templates read parts.
Json plain_messages(const Json& messages) {
  if (!messages.is_array() || messages.empty())
    throw ApiError(400, "'messages' is no list of {\"role\", \"content\"}", "messages");
  Json plain = messages;
  for (Json& message : plain) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      throw ApiError(400, "a message has no 'role'", "messages");
    const auto content = message.find("content");
    if (content == message.end() || content->is_null() || content->is_string()) continue;
    std::string text;
    for (const Json& part : content->is_array() ? *content : Json::array({*content})) {
      const auto words = part.is_object() ? part.find("text") : part.end();
      if (!part.is_object() || words == part.end() || !words->is_string())
        throw ApiError(400, "a part of a message's content is no text", "messages");
      text += words->get<std::string>();
    }
    *content = text;
  }
  return plain;
}

std::vector<std::int32_t> read_chat(RequestFields& fields, const ServedModel& model) {
  const Json* messages = fields.find("messages");
  if (messages == nullptr) throw ApiError(400, "there are no 'messages'", "messages");
  if (!model.has_template()) model.render({});  // says so
  Json variables = {{"messages", plain_messages(*messages)}};
  if (const Json* tools = fields.find("tools"); tools != nullptr && !tools->empty()) {
    if (!model.template_reads("tools"))
      throw ApiError(400, "the model's chat template takes no tools", "tools");
    variables["tools"] = *tools;
  }
  if (const Json* extra = fields.find("chat_template_kwargs")) {
    if (!extra->is_object())
      throw ApiError(400, "'chat_template_kwargs' is no object", "chat_template_kwargs");
    for (const auto& [name, value] : extra->items()) {
      if (!model.template_reads(name) || name == "messages" || name == "tools") {
        throw ApiError(400, fmt::format("the model's chat template reads no variable '{}'", name),
                       "chat_template_kwargs");
      }
      variables[name] = value;
    }
  }
  return model.render(variables);
}

std::vector<std::string> read_stops(RequestFields& fields, const ServedModel& model) {
  const Json* stop = fields.find("stop");
  if (stop == nullptr) return {};
  std::vector<std::string> stops;
  for (const Json& each : stop->is_array() ? *stop : Json::array({*stop})) {
    if (!each.is_string() || each.get_ref<const std::string&>().empty())
      throw ApiError(400, "'stop' is a text or a list of texts, none of them empty", "stop");
    stops.push_back(each.get<std::string>());
  }
  if (stops.size() > kMostStops)
    throw ApiError(400, fmt::format("'stop' has more than {} texts", kMostStops), "stop");
  if (!stops.empty() && !model.tokenizer())
    throw ApiError(400, "the model has no tokenizer: 'stop' needs text", "stop");
  return stops;
}

void read_stream(RequestFields& fields, CompletionRequest& request) {
  request.stream = fields.flag("stream", false);
  const Json* options = fields.find("stream_options");
  if (options == nullptr) return;
  RequestFields inner(*options);
  request.include_usage = inner.flag("include_usage", false);
  inner.ignore({"include_obfuscation"});
  inner.refuse_others();
  if (!request.stream) throw ApiError(400, "'stream_options' without 'stream'", "stream_options");
}

void read_logprobs(RequestFields& fields, Endpoint endpoint, CompletionRequest& request) {
  if (endpoint == Endpoint::kCompletions) {
    request.logprobs = fields.find("logprobs") != nullptr;
    request.top_logprobs = static_cast<int>(fields.integer("logprobs", 0, 0, kMostAlternatives));
    return;
  }
  request.logprobs = fields.flag("logprobs", false);
  request.top_logprobs = static_cast<int>(fields.integer("top_logprobs", 0, 0, kMostAlternatives));
  if (request.top_logprobs > 0 && !request.logprobs)
    throw ApiError(400, "'top_logprobs' without 'logprobs'", "top_logprobs");
}

void read_sampling(RequestFields& fields, CompletionRequest& request) {
  request.sampling.temperature = fields.number("temperature", 1);
  request.sampling.top_p = fields.number("top_p", 1);
  request.sampling.min_p = fields.number("min_p", 0);
  // -1 is how other servers write "all".
  request.sampling.top_k =
      std::max<std::int64_t>(0, fields.integer("top_k", 0, -1, std::int64_t{1} << 31));
  check_sampling(request.sampling);
  if (fields.find("seed") != nullptr) {
    request.seed = static_cast<std::uint64_t>(
        fields.integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  }
  request.samples = static_cast<int>(fields.integer("n", 1, 1, kMostSamples));
  request.ignore_eos = fields.flag("ignore_eos", false);
}

// What is known and not done, and what cannot change a result.
void refuse_unsupported(RequestFields& fields, Endpoint endpoint, int samples) {
  const Json nothing = Json::object();
  fields.only("logit_bias", {nothing}, "leave it out");
  fields.only("presence_penalty", {0}, "only 0 is");
  fields.only("frequency_penalty", {0}, "only 0 is");
  fields.only("repetition_penalty", {1}, "only 1 is");
  if (endpoint == Endpoint::kCompletions) {
    fields.only("echo", {false}, "the prompt is not repeated");
    fields.only("suffix", {""}, "a completion only follows its prompt");
    fields.only("best_of", {1, samples}, "all samples are given: use 'n'");
  } else {
    Json plain_text = Json::object();
    plain_text["type"] = "text";
    fields.only("response_format", {plain_text}, "answers are free text");
    fields.only("tool_choice", {"auto", "none"}, "the model chooses");
    fields.only("modalities", {Json::array({"text"})}, "answers are text");
    fields.only("reasoning_effort", {}, "set a variable of the template in 'chat_template_kwargs'");
    fields.ignore({"parallel_tool_calls", "prediction"});
  }
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier",
                 "prompt_cache_key", "prompt_cache_retention"});
  fields.refuse_others();
}

}  // namespace

CompletionRequest read_completion_request(const Json& body, Endpoint endpoint,
                                          const ServedModel& model) {
  RequestFields fields(body);
  const bool is_chat = endpoint == Endpoint::kChat;
  if (const auto name = fields.text("model"); name && *name != model.name()) {
    throw ApiError(404,
                   fmt::format("there is no model '{}'; this server has '{}'", *name, model.name()),
                   "model", "model_not_found");
  }
  CompletionRequest request;
  read_sampling(fields, request);
  read_stream(fields, request);
  read_logprobs(fields, endpoint, request);
  request.stop = read_stops(fields, model);
  request.token_ids = fields.flag("return_token_ids", false);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const std::int64_t most = fields.integer("max_tokens", is_chat ? 0 : kUsualCompletion, 1, kMost);
  request.max_tokens = is_chat ? fields.integer("max_completion_tokens", most, 1, kMost) : most;
  if (is_chat) {
    request.prompts.push_back(read_chat(fields, model));
  } else {
    request.prompts = read_prompts(fields.find("prompt"), model);
  }
  refuse_unsupported(fields, endpoint, request.samples);
  return request;
}

}  // namespace antisd::inline serve
