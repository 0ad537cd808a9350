// The steps of sampling: what a batch of prompts (RolloutEngine) and requests that come and go
// (LiveEngine) have in common. It carries out the scheduler's plans on the model, the cache and the
// decoder; who the sequences belong to and when they end is the derived class's matter.
#pragma once

#include <span>
#include <vector>

#include "algo/response.h"
#include "core/stopwatch.h"
#include "inference/decoder.h"
#include "model/not_finite.h"

namespace antisd::inline inference {

struct RolloutStats {
  std::int64_t new_tokens = 0;
  std::int64_t prefill_tokens = 0;  // prompts, and tokens recomputed after preemption
  std::int64_t steps = 0;           // of decoding
  std::int64_t surplus_tokens = 0;  // sampled after a sequence's end, before it was known
  std::int64_t preemptions = 0;
  std::int64_t kv_pages = 0, peak_kv_pages = 0;
  double slot_occupancy = 0;  // mean sequences per step / slots that the requests could fill
  double prefill_s = 0, decode_s = 0, schedule_s = 0, total_s = 0;
  double tokens_per_second() const { return total_s > 0 ? double(new_tokens) / total_s : 0; }
};

class DecodeLoop {
 protected:
  DecodeLoop(const CausalLm& model, KvPool& pool, Decoder& decoder, SchedulerLimits limits,
             std::span<const GroupShape> groups = {})
      : model_(model), pool_(pool), decoder_(decoder), scheduler_(pool.ledger(), limits, groups) {}
  ~DecodeLoop() = default;

  void step();
  // Takes the steps in flight and throws their tokens away: nothing is written to pages later.
  void drain();

  virtual const std::vector<std::int32_t>& prompt_of(int group) const = 0;
  virtual Response& response_of(int sequence) = 0;
  // Of the next token's random number.
  virtual RandomPlace place_of(int sequence) = 0;
  // A sampling of its own, or null for the decoder's.
  virtual const SequenceSampling* sampling_of(int group) const = 0;
  // After each token, which response_of() has now: whether it ends the response.
  virtual bool stops_at(int sequence, std::int32_t id, std::span<const Alternative> others) = 0;
  virtual void ended(int sequence) = 0;
  // A token whose logits are not finite; it is not part of the response.
  virtual void not_finite(int sequence, const NotFinite& error) = 0;

  const CausalLm& model_;
  KvPool& pool_;
  Decoder& decoder_;
  Scheduler scheduler_;
  RolloutStats stats_;
  double rows_sum_ = 0;  // over steps

 private:
  std::vector<std::int32_t> tokens_of(int sequence);
  void prefill(const std::vector<PrefillChunk>& chunks);
  void apply(const SlotChange& change);
  void take(bool discard = false);
  void receive(int sequence, const StepTokens& tokens, std::size_t row);

  Stopwatch clock_;
};

}  // namespace antisd::inline inference
