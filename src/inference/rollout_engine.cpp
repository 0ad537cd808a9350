#include "inference/rollout_engine.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "inference/prefill.h"
#include "model/not_finite.h"
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

// One call of generate().
class Generation {
 public:
  Generation(const CausalLm& model, std::span<const RolloutRequest> requests,
             const RolloutOptions& options, const std::function<void(SampleGroup&)>& on_group,
             KvPool& pool, Decoder& decoder, SchedulerLimits limits, std::vector<GroupShape> shapes)
      : model_(model),
        requests_(requests),
        options_(options),
        on_group_(on_group),
        pool_(pool),
        decoder_(decoder),
        scheduler_(pool.ledger(), limits, std::move(shapes)),
        most_rows_(std::min(limits.slots, scheduler_.sequences())) {
    for (std::size_t r = 0; r < requests.size(); ++r) {
      groups_.push_back({r, requests[r].prompt,
                         std::vector<Response>(static_cast<std::size_t>(requests[r].samples))});
      unfinished_.push_back(requests[r].samples);
    }
  }

  SampleBatch run() {
    Stopwatch whole;
    while (!scheduler_.done()) {
      if (options_.interrupted != nullptr && *options_.interrupted) break;
      step();
      if (options_.on_step) options_.on_step(progress());
    }
    // Tokens still in flight are surplus; their pages must not be written later.
    while (scheduler_.in_flight() > 0)
      take(/*discard=*/true);
    stats_.total_s = whole.lap();
    stats_.preemptions = scheduler_.preemptions();
    stats_.kv_pages = pool_.pages();
    if (stats_.steps > 0) stats_.slot_occupancy = rows_sum_ / double(stats_.steps) / most_rows_;
    SampleBatch batch{.stats = stats_, .interrupted = !scheduler_.done()};
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (unfinished_[g] == 0) batch.groups.push_back(std::move(groups_[g]));
    return batch;
  }

 private:
  void step() {
    const StepPlan plan = scheduler_.plan();
    if (plan.drain) return take();
    stats_.schedule_s += clock_.lap();
    prefill(plan.chunks);
    pool_.copy(plan.copies);
    stats_.prefill_s += clock_.lap();
    for (const SlotChange& change : plan.slots)
      apply(change);
    stats_.peak_kv_pages = std::max(stats_.peak_kv_pages, pool_.ledger().used());
    stats_.schedule_s += clock_.lap();
    if (plan.rows > 0) {
      decoder_.launch(plan.rows);
      scheduler_.launched();
      ++stats_.steps;
      rows_sum_ += plan.rows;
      stats_.decode_s += clock_.lap();
    }
    if (scheduler_.in_flight() > decoder_.depth() || (plan.rows == 0 && scheduler_.in_flight() > 0))
      take();
  }

  const std::vector<std::int32_t>& prompt_of(int group) const {
    return requests_[group].prompt_ids;
  }
  Response& sample_of(int sequence) {
    return groups_[scheduler_.group_of(sequence)].samples[scheduler_.sample_of(sequence)];
  }

  std::vector<std::int32_t> tokens_of(int sequence) {
    std::vector<std::int32_t> tokens = prompt_of(scheduler_.group_of(sequence));
    const std::vector<std::int32_t>& response = sample_of(sequence).ids;
    tokens.insert(tokens.end(), response.begin(), response.end());
    return tokens;
  }

  void prefill(const std::vector<PrefillChunk>& chunks) {
    if (chunks.empty()) return;
    std::vector<TokenChunk> work;
    std::vector<std::vector<std::int32_t>> kept;
    kept.reserve(chunks.size());
    for (const PrefillChunk& chunk : chunks) {
      const bool prompt = chunk.sequence < 0;
      if (!prompt) kept.push_back(tokens_of(chunk.sequence));
      const std::vector<std::int32_t>& tokens = prompt ? prompt_of(chunk.group) : kept.back();
      work.push_back(
          {{tokens.data(), static_cast<std::size_t>(chunk.end)},
           chunk.begin,
           prompt ? scheduler_.prompt_pages(chunk.group) : scheduler_.pages_of(chunk.sequence)});
      stats_.prefill_tokens += chunk.end - chunk.begin;
    }
    model_.extend(make_extension(work, model_.device()), pool_.view());
  }

  void apply(const SlotChange& change) {
    switch (change.kind) {
      case SlotChange::Kind::kMove:
        return decoder_.move(change.from, change.slot);
      case SlotChange::Kind::kAppendPage:
        return decoder_.append_page(change.slot, change.page);
      case SlotChange::Kind::kStart:
        break;
    }
    const int group = scheduler_.group_of(change.sequence);
    const std::vector<std::int32_t>& response = sample_of(change.sequence).ids;
    const std::size_t length = prompt_of(group).size() + response.size();
    decoder_.start(change.slot, response.empty() ? prompt_of(group).back() : response.back(),
                   static_cast<std::int32_t>(length - 1), scheduler_.pages_of(change.sequence),
                   {.step = options_.step,
                    .prompt = requests_[group].prompt,
                    .sample = static_cast<std::uint32_t>(scheduler_.sample_of(change.sequence)),
                    .position = static_cast<std::uint32_t>(response.size())});
  }

  void take(bool discard = false) {
    const StepTokens tokens = decoder_.take();
    stats_.decode_s += clock_.lap();
    const std::vector<int> rows = scheduler_.take();
    ANTISD_CHECK_EQ(rows.size(), tokens.ids.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (rows[row] < 0 || discard) {
        ++stats_.surplus_tokens;
      } else {
        receive(rows[row], tokens.ids[row], tokens.logp[row], tokens.raw_logp[row]);
      }
    }
    stats_.schedule_s += clock_.lap();
  }

  void receive(int sequence, std::int32_t id, float logp, float raw_logp) {
    const int g = scheduler_.group_of(sequence), s = scheduler_.sample_of(sequence);
    Response& sample = sample_of(sequence);
    if (!std::isfinite(raw_logp)) {
      throw NotFinite(
          fmt::format("the model's logits are not finite at token {} of sample {} of prompt {}",
                      sample.ids.size(), s, g),
          {.remedy = model_.dtype() == at::kHalf
                         ? "the activations may be beyond fp16's range: compute in bf16"
                         : "check the weights with `antisd score --check-weights`"});
    }
    sample.ids.push_back(id);
    sample.sampling_logp.push_back(logp);
    sample.raw_logp.push_back(raw_logp);
    ++stats_.new_tokens;
    if (options_.on_token) options_.on_token(static_cast<std::size_t>(g), s, id);
    const bool stopped = std::find(options_.stop_ids.begin(), options_.stop_ids.end(), id) !=
                             options_.stop_ids.end() ||
                         (options_.stops && options_.stops(sample.ids));
    if (!scheduler_.token(sequence, stopped)) return;
    sample.finish = stopped ? FinishReason::kStop : FinishReason::kLength;
    ++finished_;
    if (--unfinished_[g] == 0 && on_group_) on_group_(groups_[g]);
  }

  RolloutProgress progress() {
    seconds_ += since_start_.lap();
    return {.running = scheduler_.running(),
            .waiting = scheduler_.waiting(),
            .finished = finished_,
            .new_tokens = stats_.new_tokens,
            .kv_use = double(pool_.ledger().used()) / double(pool_.pages()),
            .seconds = seconds_};
  }

  const CausalLm& model_;
  std::span<const RolloutRequest> requests_;
  const RolloutOptions& options_;
  const std::function<void(SampleGroup&)>& on_group_;
  KvPool& pool_;
  Decoder& decoder_;
  Scheduler scheduler_;
  int most_rows_;
  std::vector<SampleGroup> groups_;
  std::vector<int> unfinished_;  // samples by group
  int finished_ = 0;
  double rows_sum_ = 0, seconds_ = 0;
  RolloutStats stats_;
  Stopwatch clock_, since_start_;
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
    longest = std::max(longest, group.prompt_tokens + group.max_new_tokens);
  const std::int64_t wanted =
      Scheduler::pages_wanted(groups, engine_limits(model.device(), options_));
  const std::int64_t budget =
      options_.kv_bytes > 0
          ? options_.kv_bytes
          : static_cast<std::int64_t>(static_cast<double>(available_memory(model.device())) *
                                      options_.memory_share);
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
    groups.push_back({static_cast<std::int64_t>(request.prompt_ids.size()), request.samples,
                      new_token_limit(model, request, options)});
    longest = std::max(longest, groups.back().prompt_tokens + groups.back().max_new_tokens);
  }
  const at::NoGradGuard no_grad;
  prepare_pool(model, groups);
  prepare_decoder(model, {.slots = options_.max_sequences,
                          .most_pages = longest / kPageTokens + 1,
                          .sampling = options.sampling,
                          .rng = CounterRng(options.seed, RandomStream::kSampling)});
  return Generation(model, requests, options, on_group, *pool_, *decoder_,
                    engine_limits(model.device(), options_), std::move(groups))
      .run();
}

}  // namespace antisd::inline inference
