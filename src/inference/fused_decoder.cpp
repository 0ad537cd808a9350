#include "inference/fused_decoder.h"

#include <atomic>

#include "inference/alternatives.h"
#include "inference/host_decoder.h"
#include "model/decode_block.h"
#include "model/dense_forward.h"
#include "ops/panels.h"

namespace antisd::inline inference {
namespace {

// More rows share one reading of the weights; fewer spread better over threads.
constexpr std::int64_t kMostBlockRows = 64, kLeastBlockRows = 8;
constexpr std::int64_t kMostWeightBytes = std::int64_t{256} << 20;
constexpr std::int64_t kLogitFloats = 1 << 20;  // a block's logits at a time

class FusedDecoder : public HostDecoder {
 public:
  FusedDecoder(const CausalLm& model, const KvPool& pool, const DecoderSettings& settings)
      : HostDecoder(model, pool, settings),
        cache_slots_(settings.slots),
        ids_(settings.slots),
        logp_(settings.slots),
        raw_logp_(settings.slots),
        alternatives_(settings.slots) {
    model.reserve_positions(
        std::min(settings.most_pages * kPageTokens, model.shape().max_positions));
  }

  void launch(int rows) override {
    rows_ = rows;
    for (int row = 0; row < rows; ++row)
      cache_slots_[row] = slots_.cache_slot(row);
    const std::int64_t threads = at::get_num_threads();
    // One pass for all rows where ranks fetch each layer for each other.
    const std::int64_t block = model_.has_all_layers() ? std::clamp((rows + threads - 1) / threads,
                                                                    kLeastBlockRows, kMostBlockRows)
                                                       : rows;
    const std::int64_t blocks = (rows + block - 1) / block;
    std::atomic<std::int64_t> next = 0;  // whoever is free takes the next block
    at::parallel_for(0, std::min(threads, blocks), 1, [&](std::int64_t, std::int64_t) {
      for (std::int64_t b = next++; b < blocks; b = next++)
        run_block(b * block, std::min<std::int64_t>(rows, (b + 1) * block));
    });
    for (int row = 0; row < rows; ++row)
      slots_.advance(row, ids_[row]);
  }

  StepTokens take() override {
    const auto rows = static_cast<std::size_t>(rows_);
    return {{ids_.data(), rows},
            {logp_.data(), rows},
            {raw_logp_.data(), rows},
            {alternatives_.data(), rows}};
  }

 private:
  void run_block(std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;  // of the thread
    const std::int64_t hidden = model_.shape().hidden, rows = end - begin;
    const std::int64_t width = model_.head().weight.size(0);
    const at::Tensor states =
        decode_block(model_, pool_.view(),
                     {rows, slots_.tokens.data() + begin, slots_.positions.data() + begin,
                      cache_slots_.data() + begin, slots_.pages.data() + begin * slots_.most_pages,
                      slots_.most_pages});
    thread_local std::vector<float> logits;
    const std::int64_t at_a_time = std::clamp<std::int64_t>(kLogitFloats / width, 1, rows);
    logits.resize(at_a_time * width);
    for (std::int64_t row = 0; row < rows; row += at_a_time) {
      const std::int64_t count = std::min(at_a_time, rows - row);
      panel_row_product(model_.head().weight.const_data_ptr<float>(),
                        states.const_data_ptr<float>() + row * hidden, count, hidden, width,
                        /*residual=*/nullptr, logits.data());
      for (std::int64_t i = 0; i < count; ++i)
        sample_row(logits.data() + i * width, begin + row + i);
    }
  }

  void sample_row(const float* logits, std::int64_t row) {
    const std::int64_t vocabulary = model_.shape().vocabulary;
    const SequenceSampling& sampling = sampling_[row];
    const SampledToken token = cpu_sample_row(logits, vocabulary, sampling.settings,
                                              sampling.rng.uniform(slots_.places[row]));
    ids_[row] = token.id;
    logp_[row] = token.logp;
    raw_logp_[row] = token.raw_logp;
    alternatives_[row].clear();
    if (sampling.alternatives > 0)
      alternatives_[row] = likeliest(logits, vocabulary, sampling.alternatives, token);
  }

  std::vector<std::int64_t> cache_slots_;
  int rows_ = 0;
  std::vector<std::int32_t> ids_;
  std::vector<float> logp_, raw_logp_;
  std::vector<std::vector<Alternative>> alternatives_;
};

}  // namespace

bool fused_decode_suits(const CausalLm& model) {
  return suits_dense_forward(model) && model.shape().parameter_count() * 4 <= kMostWeightBytes;
}

std::unique_ptr<Decoder> make_fused_decoder(const CausalLm& model, const KvPool& pool,
                                            const DecoderSettings& settings) {
  return std::make_unique<FusedDecoder>(model, pool, settings);
}

}  // namespace antisd::inline inference
