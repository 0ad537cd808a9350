// The seam between the engine, which knows who decodes, and a device, which decodes. A decoder has
// slots; a step takes slots [0, rows) one token further.
//
//   decoder.start(0, token, position, pages, place);
//   decoder.launch(1);                               // runs or queues a step
//   const StepTokens tokens = decoder.take();        // of the oldest step not yet taken
//
// The contract:
// - A slot holds an input token, its position, the pages of its sequence in order (at most
//   most_pages) and the place of its next random number. A step stores the input's key and value at
//   pages[position / kPageTokens], place position % kPageTokens, attends over [0, position],
//   samples with CounterRng::uniform(place), and leaves in the slot: the sampled token, position +
//   1, place.position + 1. The page of a step's position is always there before its launch.
// - start, move, append_page, launch and the engine's own work on the cache (chunks of prompts,
//   copies of pages) take effect in the order of the calls; on a GPU that is the current stream's
//   order. A step that was launched never sees a later change.
// - depth() steps may be in flight, launched and not taken, when launch() is called; there is one
//   more after it. The engine then takes the oldest. Depth 0 launches and takes in turn. With depth
//   1 the engine learns a step late that a sequence ended: it takes part in one step more, whose
//   token is thrown away. Its pages are not given to others before that step was taken.
// - What take() returns is in the order of the slots at the launch and valid until the next call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/rng.h"
#include "inference/kv_pool.h"
#include "ops/sampling.h"

namespace antisd::inline inference {

// A token and the model's own log-probability of it.
struct Alternative {
  std::int32_t id = 0;
  float raw_logp = 0;
};

struct StepTokens {
  std::span<const std::int32_t> ids;
  std::span<const float> logp, raw_logp;  // see SampledTokens
  // By row, the likeliest tokens first; empty, or empty in a row, where none were asked for.
  std::span<const std::vector<Alternative>> alternatives;
};

// How one sequence is sampled.
struct SequenceSampling {
  SamplingSettings settings;
  CounterRng rng{0, RandomStream::kSampling};
  int alternatives = 0;  // how many of the likeliest tokens each step tells
};

struct DecoderSettings {
  int slots = 1;
  std::int64_t most_pages = 1;  // of a sequence
  SamplingSettings sampling;
  CounterRng rng{0, RandomStream::kSampling};
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual int depth() const { return 0; }
  // Whether it can serve another generate() with these settings, over the same model and pool; its
  // slots are then all free.
  virtual bool fits(const DecoderSettings& settings) const = 0;
  virtual void start(int slot, std::int32_t token, std::int32_t position,
                     std::span<const std::int32_t> pages, const RandomPlace& place) = 0;
  // From now on the sequence in this slot is sampled in its own way. Only decoders that
  // make_individual_decoder() makes can do that; others sample all slots by their settings.
  virtual void sample_as(int slot, const SequenceSampling& sampling);
  virtual void move(int from, int to) = 0;  // `from` is free afterwards
  virtual void append_page(int slot, std::int32_t page) = 0;
  virtual void launch(int rows) = 0;
  virtual StepTokens take() = 0;
};

// The fastest one for the model's device. Both `model` and `pool` must outlive it.
std::unique_ptr<Decoder> make_decoder(const CausalLm& model, const KvPool& pool,
                                      const DecoderSettings& settings);

// The fastest one that can sample_as().
std::unique_ptr<Decoder> make_individual_decoder(const CausalLm& model, const KvPool& pool,
                                                 const DecoderSettings& settings);

// One that is made of tensor operations alone: any device, any architecture.
std::unique_ptr<Decoder> make_tensor_decoder(const CausalLm& model, const KvPool& pool,
                                             const DecoderSettings& settings);

}  // namespace antisd::inline inference
