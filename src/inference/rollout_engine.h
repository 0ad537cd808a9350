// Group sampling with the trainer's own weights: no copy, no second implementation of the model.
//
//   RolloutEngine engine;
//   const std::vector<RolloutRequest> requests = {{prompt_ids, /*samples=*/8}};
//   const SampleBatch batch =
//       engine.generate(model, requests, {.max_new_tokens = 512, .stop_ids = {eos}, .seed = 7},
//                       [&](SampleGroup& group) { use(group); });  // when a group ends
//   engine.release();                                              // frees memory for the update
//
// A sample depends only on its prompt, the settings and (seed, step, prompt, sample), up to the
// rounding of float sums: not on the rest of the batch, the order, the cache size or preemption;
// nor on pauses, with the same weights before and after.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "inference/decode_loop.h"

namespace antisd::inline inference {

struct RolloutRequest {
  std::vector<std::int32_t> prompt_ids;
  int samples = 1;           // in the group
  std::uint32_t prompt = 0;  // index in the training step: the key of its random numbers
  std::optional<std::uint32_t> step = {};  // the other part of it; none: RolloutOptions::step
  // Of an earlier call, one per sample: those that are paused go on where they were, at least one.
  std::vector<Response> begun = {};
};

struct SampleGroup {
  std::size_t request = 0;  // index of the request
  std::uint32_t prompt = 0;
  std::vector<Response> samples;
};

struct RolloutProgress {
  int running = 0, waiting = 0, finished = 0;  // sequences
  std::int64_t new_tokens = 0;
  double kv_use = 0;  // share of the pages
  double seconds = 0;
};

struct RolloutOptions {
  SamplingSettings sampling;
  std::int64_t max_new_tokens = 0;       // 0: limited by max_sequence_tokens
  std::int64_t max_sequence_tokens = 0;  // prompt and response; 0: the model's positions
  std::int64_t pause_after = 0;          // new tokens of a sample in this call; 0: no limit
  std::vector<std::int32_t> stop_ids;    // none: a sample ends only at its length
  // Called with the response after each token; true ends the response (stop strings).
  std::function<bool(std::span<const std::int32_t> response)> stops;
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  const std::atomic<bool>* interrupted = nullptr;  // checked before each step
  std::function<void(const RolloutProgress&)> on_step;
  std::function<void(std::size_t request, int sample, std::int32_t id)> on_token;
};

struct SampleBatch {
  std::vector<SampleGroup> groups;  // in the order of the requests; without unfinished ones
  std::vector<SampleGroup> paused;  // the same; those with a paused sample
  RolloutStats stats;
  bool interrupted = false;
};

struct EngineOptions {
  int max_sequences = 256;                // decoded at a time
  std::int64_t prefill_chunk_tokens = 0;  // between decode steps; 0: chosen for the device
  std::int64_t kv_bytes = 0;              // limit on the cache; 0: see cache_budget()
  decltype(&make_decoder) decoder = &make_decoder;
};

SchedulerLimits engine_limits(at::Device device, const EngineOptions& options);

// The share of the free memory that the cache may have. Other programs need a host's memory too.
inline double cache_share(at::Device device) {
  return device.is_cuda() ? 0.85 : 0.5;
}

// The cache's bytes where `free` are available and decoding needs `beside` of them otherwise.
double cache_budget(at::Device device, double free, double beside);

class RolloutEngine {
 public:
  explicit RolloutEngine(EngineOptions options = {});
  ~RolloutEngine();

  // InputError for requests that cannot be met (empty or over-long prompts, ids outside the
  // vocabulary, no prompts, no samples, impossible settings, a cache too small for one sequence);
  // RunError if the model computes NaN. `on_group` is called in this thread as soon as a group's
  // last sample has ended, while others still decode.
  SampleBatch generate(const CausalLm& model, std::span<const RolloutRequest> requests,
                       const RolloutOptions& options,
                       const std::function<void(SampleGroup&)>& on_group = {});

  // Frees the cache's memory until the next generate(), unless it is only a small share of the free
  // memory.
  void release();

 private:
  void drop();
  void prepare_pool(const CausalLm& model, std::span<const GroupShape> groups);
  void prepare_decoder(const CausalLm& model, const DecoderSettings& settings);

  EngineOptions options_;
  std::unique_ptr<KvPool> pool_;
  std::unique_ptr<Decoder> decoder_;  // over pool_ and *decoded_
  const CausalLm* decoded_ = nullptr;
  std::int64_t decoded_moves_ = 0;
};

// Checks one request as generate() does.
void check_rollout_request(const CausalLm& model, const RolloutRequest& request,
                           const RolloutOptions& options);

}  // namespace antisd::inline inference
