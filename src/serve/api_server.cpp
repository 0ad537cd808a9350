#include "serve/api_server.h"

#include <ctime>

#include <fmt/format.h>

#include "core/error.h"
#include "io/http/access.h"
#include "serve/answer.h"
#include "serve/api_error.h"
#include "serve/random_bits.h"

namespace antisd::inline serve {
namespace {

constexpr std::size_t kMostBody = 4 << 20;  // a context of 256K tokens as ids, and more as text
constexpr int kConnections = 512;

HttpServerOptions http_options(const ApiServerOptions& options) {
  HttpServerOptions http = options.http;
  http.limits.body_bytes = kMostBody;
  http.connections = kConnections;
  http.host = options.host;
  http.port = options.port;
  http.refusal = [](int status, const std::string& problem) {
    return ApiError(status, problem).response();
  };
  http.fields = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
  return http;
}

// Runs `action`; what it throws becomes an error object.
HttpResponse answered(const std::function<HttpResponse()>& action) {
  try {
    return action();
  } catch (const ApiError& error) {
    return error.response();
  } catch (const InputError& error) {
    return ApiError(400, error.message()).response();
  }
}

HttpResponse json_response(const Json& body) {
  return {.type = "application/json", .body = to_json_line(body)};
}

// "http://localhost:3000" -> "localhost"
std::string host_of_origin(const std::string& origin) {
  const std::size_t at = origin.find("://");
  return at == std::string::npos ? "" : host_of(origin.substr(at + 3));
}

}  // namespace

void check_address(const ApiServerOptions& options) {
  if (is_loopback(options.host) || !options.token.empty()) return;
  throw InputError(
      fmt::format("others can reach the address {}, and there is no token", options.host),
      {.where = "--host",
       .remedy = "set ANTISD_TOKEN in the environment, give --token, or listen on 127.0.0.1"});
}

ApiServer::ApiServer(const CausalLm& model, const ServedModel& text,
                     const ApiServerOptions& options)
    : options_((check_address(options), options)),
      text_(text),
      created_(std::time(nullptr)),
      service_(model, text, options.service),
      http_(http_options(options)) {
  http_.guard([this](const HttpRequest& request) { return refusal_of(request); });
  http_.route("POST", "/v1/chat/completions",
              [this](const HttpRequest& request) { return complete(request, Endpoint::kChat); });
  http_.route("POST", "/v1/completions", [this](const HttpRequest& request) {
    return complete(request, Endpoint::kCompletions);
  });
  http_.route("GET", "/v1/models", [this](const HttpRequest&) {
    return json_response({{"object", "list"}, {"data", Json::array({model_json()})}});
  });
  http_.route("GET", "/v1/models/*", [this](const HttpRequest& request) {
    const std::string name = request.path.substr(std::string_view("/v1/models/").size());
    if (name == text_.name()) return json_response(model_json());
    return ApiError(404,
                    fmt::format("there is no model '{}'; this server has '{}'", name, text_.name()),
                    "model", "model_not_found")
        .response();
  });
  http_.route("GET", "/health", [this](const HttpRequest&) { return health(); });
}

std::string ApiServer::url() const {
  return "http://" + authority_of(options_.host, http_.port());
}

void ApiServer::serve() {
  http_.serve();
}

void ApiServer::stop() {
  service_.stop(options_.stop_seconds);
  http_.stop();
}

std::optional<HttpResponse> ApiServer::refusal_of(const HttpRequest& request) const {
  if (is_loopback(options_.host)) {
    const std::string host = host_of(request.host), origin(request.field("origin"));
    if (!is_loopback(host))
      return ApiError(403, "this server answers only to loopback names").response();
    if (!origin.empty() && !is_loopback(host_of_origin(origin)))
      return ApiError(403, "this server answers no pages of other sites").response();
  }
  if (options_.token.empty() || request.path == "/health") return std::nullopt;
  const std::string bearer = "Bearer " + options_.token;
  if (equal_in_constant_time(request.field("authorization"), bearer)) return std::nullopt;
  return ApiError(401, "the request has no 'Authorization: Bearer' with this server's token", "",
                  "invalid_api_key")
      .response();
}

HttpResponse ApiServer::health() const {
  if (service_.is_stopping()) return ApiError(503, "the server is stopping").response();
  if (!service_.failure().empty()) return ApiError(500, "the server has failed").response();
  return json_response(
      {{"status", "ok"}, {"running", service_.running()}, {"waiting", service_.waiting()}});
}

Json ApiServer::model_json() const {
  return {{"id", text_.name()},
          {"object", "model"},
          {"created", created_},
          {"owned_by", "antisd"},
          {"max_model_len", service_.context()}};
}

HttpResponse ApiServer::complete(const HttpRequest& request, Endpoint endpoint) {
  return answered([&]() -> HttpResponse {
    const auto asked = std::make_shared<CompletionRequest>(
        read_completion_request(parse_json(request.body, "the body"), endpoint, text_));
    if (!asked->seed) asked->seed = random_bits();
    const auto job = std::make_shared<CompletionJob>();
    for (std::size_t i = 0; i < asked->prompts.size(); ++i) {
      LiveRequest prompt{.prompt_ids = asked->prompts[i],
                         .samples = asked->samples,
                         .prompt = static_cast<std::uint32_t>(i),
                         .max_new_tokens = asked->max_tokens};
      prompt.sampling = {asked->sampling, CounterRng(*asked->seed, RandomStream::kSampling),
                         asked->top_logprobs};
      if (!asked->ignore_eos) prompt.stop_ids = text_.stop_ids();
      job->prompts.push_back(std::move(prompt));
    }
    job->stop = asked->stop;
    service_.check(*job);  // now, while an error can still have its status
    return {.type = asked->stream ? "text/event-stream" : "application/json",
            .stream =
                [this, job, asked, endpoint](const HttpStream& stream) {
                  try {
                    job->receiver = std::make_shared<Answer>(stream, *asked, endpoint, text_);
                    service_.submit(std::move(*job));
                  } catch (const ApiError& error) {
                    stream.answer(error.response());
                  }
                },
            .head_waits = true};
  });
}

}  // namespace antisd::inline serve
