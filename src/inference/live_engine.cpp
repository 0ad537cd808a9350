#include "inference/live_engine.h"

#include <algorithm>
#include <unordered_map>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "core/error.h"
#include "inference/engine_memory.h"
#include "model/not_finite.h"
#include "ops/device.h"

namespace antisd::inline inference {
namespace {

// Pages for the longest sequences in all slots, as far as the memory goes.
std::int64_t live_pages(const CausalLm& model, const LiveOptions& options,
                        const SchedulerLimits& limits, std::int64_t context) {
  const std::vector<GroupShape> longest(
      static_cast<std::size_t>(options.max_sequences),
      {.prompt_tokens = 1, .samples = 1, .max_new_tokens = context - 1});
  const EngineMemory memory = engine_memory(model.shape(), model.device(), model.dtype(), longest,
                                            {.max_sequences = options.max_sequences,
                                             .prefill_chunk_tokens = options.prefill_chunk_tokens});
  const auto free = static_cast<double>(available_memory(model.device()));
  const double budget = options.kv_bytes > 0 ? static_cast<double>(options.kv_bytes)
                                             : cache_budget(model.device(), free, memory.beside);
  return std::min(Scheduler::pages_wanted(longest, limits),
                  static_cast<std::int64_t>(budget) / KvPool::page_bytes(model));
}

RolloutOptions limits_of(const LiveRequest& request, std::int64_t context) {
  return {.max_new_tokens = request.max_new_tokens, .max_sequence_tokens = context};
}

}  // namespace

class LiveEngine::Loop : DecodeLoop {
 public:
  Loop(const CausalLm& model, KvPool& pool, Decoder& decoder, const SchedulerLimits& limits)
      : DecodeLoop(model, pool, decoder, limits) {}

  std::uint64_t add(LiveRequest request, std::int64_t max_new_tokens) {
    const int group = scheduler_.add(
        {static_cast<std::int64_t>(request.prompt_ids.size()), request.samples, max_new_tokens});
    std::vector<Response> responses(static_cast<std::size_t>(request.samples));
    const int samples = request.samples;
    groups_[group] = {++last_ticket_, std::move(request), std::move(responses), samples};
    tickets_[last_ticket_] = group;
    return last_ticket_;
  }

  void cancel(std::uint64_t ticket) {
    const auto found = tickets_.find(ticket);
    if (found == tickets_.end()) return;
    const int group = found->second;
    scheduler_.cancel(group);
    forget(group);
  }

  bool step() {
    if (scheduler_.done()) {
      drain();
      return false;
    }
    DecodeLoop::step();
    for (const std::uint64_t ticket : std::exchange(failed_, {}))
      cancel(ticket);
    return true;
  }

  int running() const { return scheduler_.running(); }
  int waiting() const { return scheduler_.waiting(); }
  const RolloutStats& stats() const { return stats_; }

 private:
  struct Live {
    std::uint64_t ticket = 0;
    LiveRequest request;
    std::vector<Response> responses;
    int unfinished = 0;
  };

  void forget(int group) {
    tickets_.erase(groups_.at(group).ticket);
    groups_.erase(group);
  }
  Live& live_of(int sequence) { return groups_.at(scheduler_.group_of(sequence)); }

  const std::vector<std::int32_t>& prompt_of(int group) const override {
    return groups_.at(group).request.prompt_ids;
  }
  Response& response_of(int sequence) override {
    return live_of(sequence).responses[scheduler_.sample_of(sequence)];
  }
  RandomPlace place_of(int sequence) override {
    return {.prompt = live_of(sequence).request.prompt,
            .sample = static_cast<std::uint32_t>(scheduler_.sample_of(sequence)),
            .position = static_cast<std::uint32_t>(response_of(sequence).ids.size())};
  }
  const SequenceSampling* sampling_of(int group) const override {
    return &groups_.at(group).request.sampling;
  }

  bool stops_at(int sequence, std::int32_t id, std::span<const Alternative> others) override {
    const LiveRequest& request = live_of(sequence).request;
    const bool asked =
        request.on_token && request.on_token(scheduler_.sample_of(sequence),
                                             {id, response_of(sequence).raw_logp.back(), others});
    return asked || std::find(request.stop_ids.begin(), request.stop_ids.end(), id) !=
                        request.stop_ids.end();
  }

  void ended(int sequence) override {
    const int group = scheduler_.group_of(sequence);
    Live& live = groups_.at(group);
    if (live.request.on_end)
      live.request.on_end(scheduler_.sample_of(sequence), response_of(sequence).finish);
    if (--live.unfinished == 0) forget(group);
  }

  // The request is cancelled when the whole step has been taken.
  void not_finite(int sequence, const NotFinite& error) override {
    const Live& live = live_of(sequence);
    if (std::find(failed_.begin(), failed_.end(), live.ticket) != failed_.end()) return;
    failed_.push_back(live.ticket);
    if (live.request.on_failure) live.request.on_failure(error.message());
  }

  std::unordered_map<int, Live> groups_;  // by the scheduler's number
  std::unordered_map<std::uint64_t, int> tickets_;
  std::vector<std::uint64_t> failed_;
  std::uint64_t last_ticket_ = 0;
};

LiveEngine::LiveEngine(const CausalLm& model, const LiveOptions& options) : model_(model) {
  const SchedulerLimits limits =
      engine_limits(model.device(), {.max_sequences = options.max_sequences,
                                     .prefill_chunk_tokens = options.prefill_chunk_tokens});
  const std::int64_t positions = model.shape().max_positions;
  context_ = options.max_sequence_tokens > 0 ? std::min(options.max_sequence_tokens, positions)
                                             : positions;
  const std::int64_t pages = live_pages(model, options, limits, context_);
  context_ = std::min(context_, (pages - 1) * kPageTokens + 1);
  if (context_ < 2) {
    throw InputError("there is no memory for keys and values of a sequence",
                     {.remedy = "give the cache more memory"});
  }
  const at::NoGradGuard no_grad;
  pool_ = std::make_unique<KvPool>(model, pages);
  decoder_ = options.decoder(
      model, *pool_,
      {.slots = options.max_sequences, .most_pages = context_ / kPageTokens + 1, .sampling = {}});
  loop_ = std::make_unique<Loop>(model, *pool_, *decoder_, limits);
}
LiveEngine::~LiveEngine() = default;

std::int64_t LiveEngine::context() const {
  return context_;
}

void LiveEngine::check(const LiveRequest& request) const {
  check_sampling(request.sampling.settings);
  check_rollout_request(model_, {request.prompt_ids, request.samples, request.prompt},
                        limits_of(request, context_));
}

std::uint64_t LiveEngine::add(LiveRequest request) {
  const std::int64_t room = context_ - std::ssize(request.prompt_ids);
  const std::int64_t wanted = request.max_new_tokens;
  return loop_->add(std::move(request), wanted > 0 ? std::min(wanted, room) : room);
}

void LiveEngine::cancel(std::uint64_t ticket) {
  loop_->cancel(ticket);
}

bool LiveEngine::step() {
  const at::NoGradGuard no_grad;
  return loop_->step();
}

int LiveEngine::running() const {
  return loop_->running();
}
int LiveEngine::waiting() const {
  return loop_->waiting();
}
const RolloutStats& LiveEngine::stats() const {
  return loop_->stats();
}

}  // namespace antisd::inline inference
