// Sampling for requests that come and go while others decode, each with its own sampling, seed and
// limits. One thread calls it.
//
//   LiveEngine engine(model, {.max_sequences = 64});
//   LiveRequest request{.prompt_ids = ids};
//   request.on_token = [&](int, const LiveToken& token) { return show(token.id), false; };
//   const std::uint64_t ticket = engine.add(std::move(request));
//   while (engine.step()) {  // all one token further; false if there is nothing to do
//     if (client_left) engine.cancel(ticket);
//   }
//
// A response is the one that RolloutEngine gives for the same prompt, settings and seed, up to the
// rounding of float sums, whatever else is decoded.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "inference/decode_loop.h"

namespace antisd::inline inference {

struct LiveToken {
  std::int32_t id = 0;
  float raw_logp = 0;                         // the model's own: temperature 1, no filter
  std::span<const Alternative> alternatives;  // as many as the request asked for
};

struct LiveRequest {
  std::vector<std::int32_t> prompt_ids;
  int samples = 1;
  std::uint32_t prompt = 0;  // with the seed, the key of its random numbers
  SequenceSampling sampling;
  std::int64_t max_new_tokens = 0;     // 0: as many as the context has room for
  std::vector<std::int32_t> stop_ids;  // none: a sample ends only at its length
  // Called in the engine's thread; they must not call the engine. A true from on_token ends the
  // response. on_failure is for logits that are not finite: the request is then cancelled.
  std::function<bool(int sample, const LiveToken&)> on_token;
  std::function<void(int sample, FinishReason)> on_end;
  std::function<void(const std::string& problem)> on_failure;
};

struct LiveOptions {
  int max_sequences = 256;                // decoded at a time
  std::int64_t max_sequence_tokens = 0;   // prompt and response; 0: the model's positions
  std::int64_t prefill_chunk_tokens = 0;  // between decode steps; 0: chosen for the device
  std::int64_t kv_bytes = 0;              // limit on the cache; 0: see cache_budget()
  decltype(&make_decoder) decoder = &make_individual_decoder;
};

class LiveEngine {
 public:
  // Takes the cache's memory; `model` must outlive it. InputError if not even a short sequence
  // fits.
  LiveEngine(const CausalLm& model, const LiveOptions& options);
  ~LiveEngine();

  // Prompt and response of a request: less than was asked for where the cache holds no more.
  std::int64_t context() const;
  // InputError for a request that cannot be met. From any thread.
  void check(const LiveRequest& request) const;

  // A number that is never used again. The request must have passed check().
  std::uint64_t add(LiveRequest request);
  // Ends a request without another call to it; nothing if it has ended already.
  void cancel(std::uint64_t ticket);
  bool step();

  int running() const;  // sequences
  int waiting() const;
  const RolloutStats& stats() const;

 private:
  class Loop;
  const CausalLm& model_;
  std::int64_t context_ = 0;
  std::unique_ptr<KvPool> pool_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace antisd::inline inference
