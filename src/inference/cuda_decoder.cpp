#include "inference/cuda_decoder.h"

#include <deque>
#include <map>

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include "core/check.h"
#include "ops/backend.h"
#include "ops/head_logits.h"
#include "ops/kernels/decode_slots.h"
#include "ops/uniform_noise.h"

namespace antisd::inline inference {
namespace {

// Steps of few rows are cheap to round up; of many, an eighth more rows costs little.
int bucket_of(int rows) {
  int bucket = 1;
  while (bucket < rows)
    bucket = bucket < 8 ? bucket * 2 : bucket + std::max(8, bucket / 8 / 8 * 8);
  return bucket;
}

// One for all captures on a device: cuBLAS keeps a workspace for every stream that it has seen.
c10::cuda::CUDAStream capture_stream(c10::DeviceIndex device) {
  static std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams;
  const auto known = streams.find(device);
  if (known != streams.end()) return known->second;
  return streams.emplace(device, c10::cuda::getStreamFromPool(false, device)).first->second;
}

class CudaDecoder : public Decoder {
 public:
  CudaDecoder(const CausalLm& model, const KvPool& pool, const DecoderSettings& settings)
      : model_(model), pool_(pool), settings_(settings), page_counts_(settings.slots) {
    const std::int64_t capacity = bucket_of(settings.slots);
    const auto on = [&](at::ScalarType type) {
      return at::TensorOptions().device(model.device()).dtype(type);
    };
    tokens_ = at::zeros({capacity}, on(at::kLong));
    positions_ = at::zeros({capacity}, on(at::kInt));
    places_ = at::zeros({capacity, 4}, on(at::kInt));
    pages_ = at::zeros({capacity, settings.most_pages}, on(at::kInt));
    rows_ = at::zeros({1}, on(at::kInt));
    cache_rows_ = at::zeros({capacity}, on(at::kLong));
    lengths_ = at::zeros({capacity}, on(at::kInt));
    // A graph keeps addresses: the tables must not grow after its capture.
    model.reserve_positions(settings.most_pages * kPageTokens);
  }

  ~CudaDecoder() override {
    // Graphs hold memory of steps that may still run.
    c10::cuda::getCurrentCUDAStream(model_.device().index()).synchronize();
    // The allocator keeps a dropped graph's memory apart until it is asked to let go, and cannot do
    // that when it runs out in the middle of the next capture.
    steps_.clear();
    c10::cuda::CUDACachingAllocator::emptyCache();
  }

  int depth() const override { return 1; }

  bool fits(const DecoderSettings& settings) const override {
    return settings.slots == settings_.slots && settings.most_pages <= settings_.most_pages &&
           settings.sampling == settings_.sampling && settings.rng.key() == settings_.rng.key();
  }

  void start(int slot, std::int32_t token, std::int32_t position,
             std::span<const std::int32_t> pages, const RandomPlace& place) override {
    ANTISD_CHECK(static_cast<std::int64_t>(pages.size()) <= settings_.most_pages);
    page_counts_[slot] = static_cast<std::int32_t>(pages.size());
    add(SlotEdit::kStart, {slot, token, position});
    for (const std::uint32_t word : counter_of(place))
      edits_.push_back(static_cast<std::int32_t>(word));
    edits_.push_back(page_counts_[slot]);
    edits_.insert(edits_.end(), pages.begin(), pages.end());
  }

  void move(int from, int to) override {
    page_counts_[to] = page_counts_[from];
    add(SlotEdit::kMove, {from, to, page_counts_[from]});
  }

  void append_page(int slot, std::int32_t page) override {
    ANTISD_CHECK(page_counts_[slot] < settings_.most_pages);
    add(SlotEdit::kAppend, {slot, page_counts_[slot]++, page});
  }

  void launch(int rows) override {
    const at::NoGradGuard no_grad;
    const c10::cuda::CUDAGuard device(model_.device());
    const int bucket = std::min<int>(bucket_of(rows), static_cast<int>(tokens_.size(0)));
    Step& step = captured(bucket);  // before the edits: a capture runs a step of no rows
    if (rows != device_rows_) add(SlotEdit::kRows, {rows});
    device_rows_ = rows;
    send_edits();
    step.graph->replay();
    fetch(step, rows);
  }

  StepTokens take() override {
    ANTISD_CHECK(!in_flight_.empty());
    taken_ = std::move(in_flight_.front());
    in_flight_.pop_front();
    taken_.ready.synchronize();
    const auto rows = static_cast<std::size_t>(taken_.rows);
    return {{taken_.ids.const_data_ptr<std::int32_t>(), rows},
            {taken_.logp.const_data_ptr<float>(), rows},
            {taken_.raw_logp.const_data_ptr<float>(), rows}};
  }

 private:
  // A captured step of a number of rows, and where it leaves its results.
  struct Step {
    std::unique_ptr<at::cuda::CUDAGraph> graph;
    SampledTokens sampled;
  };

  // A step's results on their way to the host.
  struct Flight {
    int rows = 0;
    at::Tensor ids, logp, raw_logp;  // pinned
    at::cuda::CUDAEvent ready;
  };

  void add(SlotEdit kind, std::initializer_list<std::int32_t> words) {
    edits_.push_back(static_cast<std::int32_t>(kind));
    edits_.insert(edits_.end(), words);
  }

  DecodeSlots slots() const {
    return {tokens_.mutable_data_ptr<std::int64_t>(),  positions_.mutable_data_ptr<std::int32_t>(),
            places_.mutable_data_ptr<std::int32_t>(),  pages_.mutable_data_ptr<std::int32_t>(),
            rows_.mutable_data_ptr<std::int32_t>(),    cache_rows_.mutable_data_ptr<std::int64_t>(),
            lengths_.mutable_data_ptr<std::int32_t>(), settings_.most_pages};
  }

  void send_edits() {
    if (edits_.empty()) return;
    const auto count = static_cast<std::int64_t>(edits_.size());
    // The allocator of pinned memory keeps it until the copy is done.
    const at::Tensor words =
        at::empty({count}, at::TensorOptions().dtype(at::kInt).pinned_memory(true));
    std::copy(edits_.begin(), edits_.end(), words.mutable_data_ptr<std::int32_t>());
    const at::Tensor there = words.to(model_.device(), /*non_blocking=*/true);
    launch_slot_edits(slots(), there.const_data_ptr<std::int32_t>(), count,
                      current_stream(tokens_));
    edits_.clear();
  }

  SampledTokens run_step(int bucket) {
    const cudaStream_t stream = current_stream(tokens_);
    launch_prepare_slots(slots(), kPageTokens, bucket, stream);
    DecodeStep step;
    step.ids = tokens_.narrow(0, 0, bucket);
    step.positions = positions_.narrow(0, 0, bucket);
    step.slots = cache_rows_.narrow(0, 0, bucket);
    step.table = {pages_.narrow(0, 0, bucket), lengths_.narrow(0, 0, bucket)};
    step.longest_sequence = 1;  // lengths are the scheduler's business; tables are reserved
    const at::Tensor hidden = model_.decode(step, pool_.view());
    const at::Tensor logits = head_logits(hidden, model_.head().weight);
    const at::Tensor noise = uniform_noise(settings_.rng, places_.narrow(0, 0, bucket));
    SampledTokens sampled = sample(logits, model_.shape().vocabulary, settings_.sampling, noise);
    launch_advance_slots(slots(), sampled.ids.const_data_ptr<std::int32_t>(), bucket, stream);
    return sampled;
  }

  // The graph for a bucket, captured when it is first needed.
  Step& captured(int bucket) {
    const auto [entry, is_new] = steps_.try_emplace(bucket);
    Step& step = entry->second;
    if (!is_new) return step;
    const c10::cuda::CUDAStream outer = c10::cuda::getCurrentCUDAStream(model_.device().index());
    outer.synchronize();
    const c10::cuda::CUDAStreamGuard guard(capture_stream(outer.device_index()));
    // A step of no rows, outside any graph, so that libraries and workspaces are there. It changes
    // no slot and no page.
    at::Tensor rows = rows_.clone();
    rows_.zero_();
    run_step(bucket);
    step.graph = std::make_unique<at::cuda::CUDAGraph>();
    guard.current_stream().synchronize();
    // Only this thread's calls are captured: another one may be writing a checkpoint.
    constexpr cudaStreamCaptureMode kMode = cudaStreamCaptureModeThreadLocal;
    if (steps_.size() == 1) {
      step.graph->capture_begin({0, 0}, kMode);
    } else {
      step.graph->capture_begin(memory_pool_, kMode);  // graphs never run together: they share
    }
    step.sampled = run_step(bucket);
    step.graph->capture_end();
    memory_pool_ = step.graph->pool();
    rows_.copy_(rows);
    guard.current_stream().synchronize();
    return step;
  }

  void fetch(const Step& step, int rows) {
    Flight flight;
    flight.rows = rows;
    const auto copy = [&](const at::Tensor& source) {
      at::Tensor target = at::empty({rows}, source.options().device(at::kCPU).pinned_memory(true));
      target.copy_(source.narrow(0, 0, rows), /*non_blocking=*/true);
      return target;
    };
    flight.ids = copy(step.sampled.ids);
    flight.logp = copy(step.sampled.logp);
    flight.raw_logp = copy(step.sampled.raw_logp);
    flight.ready.record(c10::cuda::getCurrentCUDAStream(model_.device().index()));
    in_flight_.push_back(std::move(flight));
  }

  const CausalLm& model_;
  const KvPool& pool_;
  DecoderSettings settings_;
  at::Tensor tokens_, positions_, places_, pages_, rows_, cache_rows_, lengths_;  // DecodeSlots
  int device_rows_ = -1;
  std::vector<std::int32_t> page_counts_;
  std::vector<std::int32_t> edits_;  // since the last launch
  std::map<int, Step> steps_;        // by bucket
  at::cuda::MempoolId_t memory_pool_{0, 0};
  std::deque<Flight> in_flight_;
  Flight taken_;
};

}  // namespace

std::unique_ptr<Decoder> make_cuda_decoder(const CausalLm& model, const KvPool& pool,
                                           const DecoderSettings& settings) {
  return std::make_unique<CudaDecoder>(model, pool, settings);
}

}  // namespace antisd::inline inference
