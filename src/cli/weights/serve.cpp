// `serve MODEL`.

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/weights/model_options.h"
#include "core/error.h"
#include "serve/api_server.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

struct ServeOptions {
  ModelOptions model;
  ApiServerOptions server;
  std::string name;
  std::int64_t kv_mib = 0;
  bool quiet = false;
};

// A folder's name, or what the user calls the model.
std::string name_of(const ServeOptions& options) {
  if (!options.name.empty()) return options.name;
  std::error_code error;
  const fs::path folder = fs::canonical(options.model.model, error);
  return error ? options.model.model : folder.filename().string();
}

// --token, or the environment's, which other users of the machine do not see in `ps`.
std::string token_of(const ServeOptions& options) {
  std::string token = options.server.token;
  const char* in_environment = std::getenv("ANTISD_TOKEN");
  if (token.empty() && in_environment != nullptr) token = in_environment;
  for (const char c : token) {
    if (c > 0x20 && c < 0x7f) continue;
    throw InputError("a token consists of visible ASCII characters",
                     {.where = options.server.token.empty() ? "ANTISD_TOKEN" : "--token",
                      .remedy = "take, for example, the output of `openssl rand -hex 16`"});
  }
  return token;
}

void say_ready(const ApiServer& server, const ServedModel& text, const ApiServerOptions& options) {
  const bool chat = text.has_template();
  const std::string say = chat               ? R"("messages":[{"role":"user","content":"hello"}])"
                          : text.tokenizer() ? R"("prompt":"hello")"
                                             : R"("prompt":[1,2,3],"return_token_ids":true)";
  std::cerr << fmt::format(
      "serving {} at {}/v1, context {} tokens; try: curl {}/v1/{}completions {}"
      "-H 'Content-Type: application/json' -d '{{{}}}'\n",
      text.name(), server.url(), server.context(), server.url(), chat ? "chat/" : "",
      options.token.empty() ? "" : "-H \"Authorization: Bearer $ANTISD_TOKEN\" ", say);
}

int serve_until_interrupted(ServeOptions options) {
  outlive_refused_writes();
  const std::atomic<bool>& interrupted = catch_interrupts();
  options.server.token = token_of(options);
  options.server.service.engine.kv_bytes = options.kv_mib << 20;
  check_address(options.server);  // before the weights are read
  const ServedModel text(files_of(options.model), name_of(options));
  const CausalLm model = open_model(options.model);
  ApiServer server(model, text, options.server);
  if (!options.quiet) say_ready(server, text, options.server);
  std::cout << server.url() << std::endl;
  std::thread http([&] { server.serve(); });
  while (!interrupted && server.failure().empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::string failure = server.failure();
  server.stop();
  http.join();
  if (!failure.empty()) throw RunError("the engine failed: " + failure);
  return kInterruptedStatus;
}

}  // namespace

std::function<int()> add_serve(CLI::App& app) {
  const auto options = std::make_shared<ServeOptions>();
  ApiServerOptions& server = options->server;
  add_model_argument(app, options->model);
  app.add_option("--host", server.host,
                 "address to listen on; if it is not loopback, requests need a token")
      ->capture_default_str();
  app.add_option("--port", server.port, "0 takes a free one")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  app.add_option("--token", server.token,
                 "what requests must send as 'Authorization: Bearer'; better in the environment as "
                 "ANTISD_TOKEN, where `ps` does not show it");
  app.add_option("--name", options->name, "the model's id for clients; the folder's name if empty");
  app.add_option("--max-sequences", server.service.engine.max_sequences,
                 "sequences decoded at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--max-waiting", server.service.max_waiting,
                 "sequences that may wait for their turn; a request beyond them gets status 429")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--context", server.service.engine.max_sequence_tokens,
                 "tokens of prompt and answer; 0: the model's positions")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  app.add_option("--kv-memory", options->kv_mib,
                 "MiB for keys and values; 0: at most half of the free memory")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30));
  add_device_options(app, options->model);
  app.add_flag("--quiet", options->quiet, "no line on standard error when it is ready");
  app.footer(
      "POST /v1/chat/completions and /v1/completions, GET /v1/models and /health, as OpenAI's\n"
      "interface has them: streaming, n, stop, seed, logprobs, usage. The address is written to\n"
      "standard output. ^C ends: answers under way get 5 seconds. See docs/serve.md.");
  return [options] { return serve_until_interrupted(*options); };
}

}  // namespace antisd::inline cli
