#include "inference/rollout_engine.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "core/error.h"
#include "inference/engine_memory.h"
#include "ops/device.h"

namespace antisd::inline inference {
namespace {

constexpr std::int64_t kSmallShare = 64;  // a pool below 1/64 of the free memory is kept
constexpr std::int64_t kCpuChunkTokens = 1024, kGpuChunkTokens = 8192;

std::int64_t length_limit(const CausalLm& model, const RolloutOptions& options) {
  const std::int64_t positions = model.shape().max_positions;
  return options.max_sequence_tokens > 0 ? std::min(options.max_sequence_tokens, positions)
                                         : positions;
}

std::int64_t new_token_limit(const CausalLm& model, const RolloutRequest& request,
                             const RolloutOptions& options) {
  const std::int64_t left =
      length_limit(model, options) - static_cast<std::int64_t>(request.prompt_ids.size());
  return options.max_new_tokens > 0 ? std::min(options.max_new_tokens, left) : left;
}

// The samples that go on: all, or those of an earlier call that are paused.
std::vector<int> open_samples(const RolloutRequest& request) {
  std::vector<int> open;
  for (int sample = 0; sample < request.samples; ++sample)
    if (request.begun.empty() || request.begun[static_cast<std::size_t>(sample)].paused())
      open.push_back(sample);
  return open;
}

GroupShape shape_of(const CausalLm& model, const RolloutRequest& request,
                    const RolloutOptions& options) {
  const std::vector<int> open = open_samples(request);
  GroupShape shape{.prompt_tokens = std::ssize(request.prompt_ids),
                   .samples = static_cast<int>(open.size()),
                   .max_new_tokens = new_token_limit(model, request, options),
                   .pause_after = options.pause_after};
  for (const int sample : open)
    if (!request.begun.empty())
      shape.begun.push_back(std::ssize(request.begun[static_cast<std::size_t>(sample)].ids));
  return shape;
}

// One call of generate().
class Generation : DecodeLoop {
 public:
  Generation(const CausalLm& model, std::span<const RolloutRequest> requests,
             const RolloutOptions& options, const std::function<void(SampleGroup&)>& on_group,
             KvPool& pool, Decoder& decoder, SchedulerLimits limits,
             std::span<const GroupShape> shapes)
      : DecodeLoop(model, pool, decoder, limits, shapes),
        requests_(requests),
        options_(options),
        on_group_(on_group),
        most_rows_(std::min(limits.slots, scheduler_.sequences())) {
    for (std::size_t r = 0; r < requests.size(); ++r) {
      const RolloutRequest& request = requests[r];
      groups_.push_back({r, request.prompt,
                         request.begun.empty()
                             ? std::vector<Response>(static_cast<std::size_t>(request.samples))
                             : request.begun});
      open_.push_back(open_samples(request));
      unfinished_.push_back(static_cast<int>(open_.back().size()));
      paused_.push_back(false);
    }
  }

  SampleBatch run() {
    Stopwatch whole;
    while (!scheduler_.done()) {
      if (options_.interrupted != nullptr && *options_.interrupted) break;
      step();
      if (options_.on_step) options_.on_step(progress());
    }
    drain();
    stats_.total_s = whole.lap();
    stats_.preemptions = scheduler_.preemptions();
    stats_.kv_pages = pool_.pages();
    if (stats_.steps > 0) stats_.slot_occupancy = rows_sum_ / double(stats_.steps) / most_rows_;
    SampleBatch batch{.stats = stats_, .interrupted = !scheduler_.done()};
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (unfinished_[g] == 0)
        (paused_[g] ? batch.paused : batch.groups).push_back(std::move(groups_[g]));
    return batch;
  }

 private:
  const std::vector<std::int32_t>& prompt_of(int group) const override {
    return requests_[group].prompt_ids;
  }
  int sample_of(int sequence) const {
    return open_[scheduler_.group_of(sequence)][scheduler_.sample_of(sequence)];
  }
  Response& response_of(int sequence) override {
    return groups_[scheduler_.group_of(sequence)].samples[sample_of(sequence)];
  }
  RandomPlace place_of(int sequence) override {
    const RolloutRequest& request = requests_[scheduler_.group_of(sequence)];
    return {.step = request.step.value_or(options_.step),
            .prompt = request.prompt,
            .sample = static_cast<std::uint32_t>(sample_of(sequence)),
            .position = static_cast<std::uint32_t>(response_of(sequence).ids.size())};
  }
  const SequenceSampling* sampling_of(int) const override { return nullptr; }

  bool stops_at(int sequence, std::int32_t id, std::span<const Alternative>) override {
    if (options_.on_token) {
      options_.on_token(static_cast<std::size_t>(scheduler_.group_of(sequence)),
                        sample_of(sequence), id);
    }
    return std::find(options_.stop_ids.begin(), options_.stop_ids.end(), id) !=
               options_.stop_ids.end() ||
           (options_.stops && options_.stops(response_of(sequence).ids));
  }

  void ended(int sequence) override {
    const int g = scheduler_.group_of(sequence);
    Response& sample = response_of(sequence);
    if (sample.truncated() &&
        std::ssize(sample.ids) < new_token_limit(model_, requests_[g], options_)) {
      sample.finish = FinishReason::kPaused;
      paused_[g] = true;
    }
    ++finished_;
    if (--unfinished_[g] == 0 && !paused_[g] && on_group_) on_group_(groups_[g]);
  }

  void not_finite(int, const NotFinite& error) override { throw error; }

  RolloutProgress progress() {
    seconds_ += since_start_.lap();
    return {.running = scheduler_.running(),
            .waiting = scheduler_.waiting(),
            .finished = finished_,
            .new_tokens = stats_.new_tokens,
            .kv_use = double(pool_.ledger().used()) / double(pool_.pages()),
            .seconds = seconds_};
  }

  std::span<const RolloutRequest> requests_;
  const RolloutOptions& options_;
  const std::function<void(SampleGroup&)>& on_group_;
  int most_rows_;
  std::vector<SampleGroup> groups_;
  std::vector<std::vector<int>> open_;  // by group: the samples that the scheduler knows
  std::vector<int> unfinished_;         // of those, by group
  std::vector<bool> paused_;            // by group: one of them is
  int finished_ = 0;
  double seconds_ = 0;
  Stopwatch since_start_;
};

}  // namespace

void check_rollout_request(const CausalLm& model, const RolloutRequest& request,
                           const RolloutOptions& options) {
  const std::int64_t vocabulary = model.shape().vocabulary;
  if (request.prompt_ids.empty()) {
    throw InputError("the prompt is empty",
                     {.remedy = "give at least one token, e.g. the beginning-of-text token"});
  }
  if (request.samples < 1) {
    throw InputError(fmt::format("{} samples of a prompt", request.samples),
                     {.remedy = "ask for at least 1"});
  }
  ANTISD_CHECK(request.begun.empty() || std::ssize(request.begun) == request.samples);
  for (std::size_t i = 0; i < request.prompt_ids.size(); ++i) {
    if (request.prompt_ids[i] >= 0 && request.prompt_ids[i] < vocabulary) continue;
    throw InputError(fmt::format("the prompt holds id {} at position {}; the model knows ids 0 to "
                                 "{}",
                                 request.prompt_ids[i], i, vocabulary - 1),
                     {.remedy = "use the tokenizer of this model"});
  }
  if (new_token_limit(model, request, options) < 1) {
    throw InputError(
        fmt::format("the prompt has {} tokens; with a limit of {} for prompt and response there is "
                    "no room for one more",
                    request.prompt_ids.size(), length_limit(model, options)),
        {.remedy = options.max_sequence_tokens > 0 &&
                           options.max_sequence_tokens < model.shape().max_positions
                       ? "shorten the prompt or raise the limit"
                       : "shorten the prompt; the model has no more positions "
                         "(max_position_embeddings)"});
  }
}

SchedulerLimits engine_limits(at::Device device, const EngineOptions& options) {
  const std::int64_t chunk = options.prefill_chunk_tokens > 0 ? options.prefill_chunk_tokens
                             : device.is_cuda()               ? kGpuChunkTokens
                                                              : kCpuChunkTokens;
  return {
      .page_tokens = kPageTokens, .slots = options.max_sequences, .prefill_chunk_tokens = chunk};
}

double cache_budget(at::Device device, double free, double beside) {
  return std::clamp(free - beside, 0.0, cache_share(device) * std::max(free, 0.0));
}

RolloutEngine::RolloutEngine(EngineOptions options) : options_(options) {
  ANTISD_CHECK(options.max_sequences > 0);
}
RolloutEngine::~RolloutEngine() = default;

void RolloutEngine::release() {
  // A small pool is kept, and with it the captured steps of a small model.
  if (pool_ && pool_->bytes() * kSmallShare < available_memory(pool_->device())) return;
  drop();
}

void RolloutEngine::drop() {
  decoder_.reset();
  pool_.reset();
}

void RolloutEngine::prepare_pool(const CausalLm& model, std::span<const GroupShape> groups) {
  std::int64_t longest = 0;
  for (const GroupShape& group : groups)
    longest = std::max(longest, group.longest());
  const std::int64_t wanted =
      Scheduler::pages_wanted(groups, engine_limits(model.device(), options_));
  const std::int64_t budget =
      options_.kv_bytes > 0
          ? options_.kv_bytes
          : static_cast<std::int64_t>(cache_budget(
                model.device(), static_cast<double>(available_memory(model.device())),
                engine_memory(model.shape(), model.device(), model.dtype(), groups, options_)
                    .beside));
  if (pool_ && pool_->fits(model) && pool_->pages() >= wanted && pool_->ledger().used() == 0)
    return;
  drop();
  const std::int64_t pages = std::min(wanted, budget / KvPool::page_bytes(model));
  if (Scheduler::pages_needed(longest, kPageTokens) > pages) {
    throw InputError(
        fmt::format("{:.1f} MiB for keys and values hold a sequence of {} tokens; one may need {}",
                    static_cast<double>(budget) / (1 << 20),
                    std::max<std::int64_t>(0, (pages - 1) * kPageTokens + 1), longest),
        {.remedy = "allow fewer new tokens, or give the cache more memory"});
  }
  pool_ = std::make_unique<KvPool>(model, pages);
}

void RolloutEngine::prepare_decoder(const CausalLm& model, const DecoderSettings& settings) {
  const std::int64_t moves = model.parameters().moves();  // captured steps keep addresses
  if (decoder_ && decoded_ == &model && decoded_moves_ == moves && decoder_->fits(settings)) return;
  decoder_.reset();  // its memory first
  decoder_ = options_.decoder(model, *pool_, settings);
  decoded_ = &model;
  decoded_moves_ = moves;
}

SampleBatch RolloutEngine::generate(const CausalLm& model, std::span<const RolloutRequest> requests,
                                    const RolloutOptions& options,
                                    const std::function<void(SampleGroup&)>& on_group) {
  if (requests.empty()) throw InputError("there are no prompts", {.remedy = "give at least one"});
  check_sampling(options.sampling);
  std::vector<GroupShape> groups;
  std::int64_t longest = 0;
  for (const RolloutRequest& request : requests) {
    check_rollout_request(model, request, options);
    groups.push_back(shape_of(model, request, options));
    longest = std::max(longest, groups.back().prompt_tokens + groups.back().max_new_tokens);
  }
  const at::NoGradGuard no_grad;
  prepare_pool(model, groups);
  prepare_decoder(model, {.slots = options_.max_sequences,
                          .most_pages = longest / kPageTokens + 1,
                          .sampling = options.sampling,
                          .rng = CounterRng(options.seed, RandomStream::kSampling)});
  return Generation(model, requests, options, on_group, *pool_, *decoder_,
                    engine_limits(model.device(), options_), groups)
      .run();
}

}  // namespace antisd::inline inference
