#include "inference/alternatives.h"
#include "inference/host_decoder.h"
#include "ops/head_logits.h"
#include "ops/uniform_noise.h"

namespace antisd::inline inference {
namespace {

class TensorDecoder : public HostDecoder {
 public:
  using HostDecoder::HostDecoder;

  void launch(int rows) override {
    const at::NoGradGuard no_grad;
    const at::Tensor hidden = model_.decode(inputs(rows), pool_.view());
    const at::Tensor logits = head_logits(hidden, model_.head().weight);
    if (is_individual_) {
      sample_individually(logits, rows);
    } else {
      const at::Tensor noise = uniform_noise(settings_.rng, places(rows).to(model_.device()));
      taken_ = on_host(sample(logits, model_.shape().vocabulary, settings_.sampling, noise));
    }
    for (int row = 0; row < rows; ++row)
      slots_.advance(row, taken_.ids.const_data_ptr<std::int32_t>()[row]);
  }

  StepTokens take() override {
    const auto rows = static_cast<std::size_t>(taken_.ids.numel());
    return {{taken_.ids.const_data_ptr<std::int32_t>(), rows},
            {taken_.logp.const_data_ptr<float>(), rows},
            {taken_.raw_logp.const_data_ptr<float>(), rows},
            alternatives_};
  }

 private:
  static SampledTokens on_host(const SampledTokens& sampled) {
    return {sampled.ids.to(at::kCPU), sampled.logp.to(at::kCPU), sampled.raw_logp.to(at::kCPU)};
  }

  // Rows with the same settings are sampled together.
  void sample_individually(const at::Tensor& logits, int rows) {
    taken_ = {at::empty({rows}, at::kInt), at::empty({rows}, at::kFloat),
              at::empty({rows}, at::kFloat)};
    std::vector<bool> sampled(rows, false);
    for (int first = 0; first < rows; ++first) {
      if (sampled[first]) continue;
      const SamplingSettings& settings = sampling_[first].settings;
      std::vector<std::int64_t> alike;
      std::vector<double> noise;
      for (int row = first; row < rows; ++row) {
        if (!(sampling_[row].settings == settings)) continue;
        sampled[row] = true;
        alike.push_back(row);
        noise.push_back(sampling_[row].rng.uniform(slots_.places[row]));
      }
      const at::Tensor index = at::tensor(at::ArrayRef<std::int64_t>(alike), at::kLong);
      const SampledTokens part = on_host(sample(
          logits.index_select(0, index.to(logits.device())), model_.shape().vocabulary, settings,
          at::tensor(at::ArrayRef<double>(noise), at::kDouble).to(logits.device())));
      taken_.ids.index_copy_(0, index, part.ids);
      taken_.logp.index_copy_(0, index, part.logp);
      taken_.raw_logp.index_copy_(0, index, part.raw_logp);
    }
    find_alternatives(logits, rows);
  }

  void find_alternatives(const at::Tensor& logits, int rows) {
    alternatives_.assign(static_cast<std::size_t>(rows), {});
    for (int row = 0; row < rows; ++row) {
      if (sampling_[row].alternatives == 0) continue;
      const at::Tensor own = logits[row].to(at::kCPU);
      alternatives_[row] = likeliest(own.const_data_ptr<float>(), model_.shape().vocabulary,
                                     sampling_[row].alternatives,
                                     {taken_.ids.const_data_ptr<std::int32_t>()[row], 0,
                                      taken_.raw_logp.const_data_ptr<float>()[row]});
    }
  }

  DecodeStep inputs(int rows) const {
    DecodeStep step;
    std::vector<std::int64_t> ids, cache_slots;
    std::vector<std::int32_t> lengths;
    for (int row = 0; row < rows; ++row) {
      ids.push_back(slots_.tokens[row]);
      cache_slots.push_back(slots_.cache_slot(row));
      lengths.push_back(slots_.positions[row] + 1);
      step.longest_sequence = std::max<std::int64_t>(step.longest_sequence, lengths.back());
    }
    const at::Device device = model_.device();
    const auto ints = [&](const std::int32_t* data, std::vector<std::int64_t> sizes) {
      return at::from_blob(const_cast<std::int32_t*>(data), sizes, at::kInt)
          .to(device, at::kInt, /*non_blocking=*/false, /*copy=*/true);
    };
    step.ids = at::tensor(at::ArrayRef<std::int64_t>(ids), at::kLong).to(device);
    step.slots = at::tensor(at::ArrayRef<std::int64_t>(cache_slots), at::kLong).to(device);
    step.positions = ints(slots_.positions.data(), {rows});
    step.table = {ints(slots_.pages.data(), {rows, slots_.most_pages}),
                  ints(lengths.data(), {rows})};
    return step;
  }

  at::Tensor places(int rows) const {
    at::Tensor places = at::empty({rows, 4}, at::kInt);
    auto* next = places.data_ptr<std::int32_t>();
    for (int row = 0; row < rows; ++row) {
      for (const std::uint32_t word : counter_of(slots_.places[row]))
        *next++ = static_cast<std::int32_t>(word);
    }
    return places;
  }

  SampledTokens taken_;
  std::vector<std::vector<Alternative>> alternatives_;
};

}  // namespace

std::unique_ptr<Decoder> make_tensor_decoder(const CausalLm& model, const KvPool& pool,
                                             const DecoderSettings& settings) {
  return std::make_unique<TensorDecoder>(model, pool, settings);
}

}  // namespace antisd::inline inference
