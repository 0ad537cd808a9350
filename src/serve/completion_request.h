// A request for completions, read from the JSON of /v1/completions or /v1/chat/completions.
//
//   const CompletionRequest request = read_completion_request(body, Endpoint::kChat, text);
//
// What would change the result and is not supported is refused by name; what cannot change it (a
// user's name, metadata) is ignored. A null is as good as nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "ops/sampling.h"
#include "serve/served_model.h"

namespace antisd::inline serve {

enum class Endpoint { kCompletions, kChat };

struct CompletionRequest {
  std::vector<std::vector<std::int32_t>> prompts;
  int samples = 1;  // of each prompt
  SamplingSettings sampling;
  std::optional<std::uint64_t> seed;
  std::int64_t max_tokens = 0;  // 0: as many as the context has room for
  std::vector<std::string> stop;
  bool ignore_eos = false;
  bool stream = false, include_usage = false;
  bool logprobs = false;   // of the sampled tokens
  int top_logprobs = 0;    // and of the likeliest ones
  bool token_ids = false;  // an extension: the ids of prompt and response
};

// Throws ApiError or InputError.
CompletionRequest read_completion_request(const Json& body, Endpoint endpoint,
                                          const ServedModel& model);

}  // namespace antisd::inline serve
