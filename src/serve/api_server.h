// OpenAI's interface over HTTP: /v1/chat/completions, /v1/completions, /v1/models and /health.
//
//   ApiServer server(model, text, {.port = 8000});
//   std::cerr << server.url();
//   server.serve();  // until stop(), from any thread
//
// On a loopback address a request must name a loopback host, and one from a web page (Origin) must
// come from such a host: no other site can use the server through a browser. On any other address a
// request must have the token.
#pragma once

#include <string>
#include <thread>

#include "io/http/server.h"
#include "serve/completion_request.h"
#include "serve/service.h"

namespace antisd::inline serve {

struct ApiServerOptions {
  std::string host = "127.0.0.1";
  int port = 8000;         // 0: a free one
  std::string token = {};  // "": none is asked for
  ServiceOptions service = {};
  double stop_seconds = 5;  // for answers under way when it stops
  HttpServerOptions http = {};
};

// InputError for an address that others can reach without a token.
void check_address(const ApiServerOptions& options);

class ApiServer {
 public:
  // Takes the engine's memory and binds. InputError as above; RunError if the address is
  // unavailable. `model` and `text` must outlive it.
  ApiServer(const CausalLm& model, const ServedModel& text, const ApiServerOptions& options);

  std::string url() const;  // http://127.0.0.1:8000
  std::int64_t context() const { return service_.context(); }
  void serve();
  // Refuses new requests, gives those under way their time, and ends serve().
  void stop();
  std::string failure() const { return service_.failure(); }

 private:
  std::optional<HttpResponse> refusal_of(const HttpRequest& request) const;
  HttpResponse complete(const HttpRequest& request, Endpoint endpoint);
  HttpResponse health() const;
  Json model_json() const;

  const ApiServerOptions options_;
  const ServedModel& text_;
  const std::int64_t created_;
  Service service_;
  HttpServer http_;  // last: its threads use everything above
};

}  // namespace antisd::inline serve
