#include "model/causal_lm.h"

#include <ATen/Context.h>

#include "core/check.h"
#include "core/error.h"
#include "model/architecture.h"
#include "model/checkpointed.h"
#include "model/dense_forward.h"
#include "model/rope_settings.h"
#include "ops/rms_norm.h"

namespace antisd::inline model {
namespace {

DenseTokens dense_tokens(const at::Tensor& ids, const at::Tensor& positions) {
  return {ids.numel(), ids.const_data_ptr<std::int64_t>(),
          positions.const_data_ptr<std::int32_t>()};
}

ModelShape with_adapters(ModelShape shape, const std::optional<LoraShape>& lora) {
  shape.lora = lora;
  return shape;
}

}  // namespace

at::ScalarType compute_dtype(at::Device device, const std::string& name) {
  const bool small = name == "bf16" || name == "fp16";
  ANTISD_CHECK(small || name == "auto" || name == "fp32");
  if (small && device.is_cpu()) {
    throw InputError("the CPU computes only in fp32",
                     {.where = "--dtype", .remedy = "leave it out, or use a GPU"});
  }
  if (name == "fp32" && device.is_cuda()) {
    throw InputError("attention on a GPU computes in bf16 or fp16",
                     {.where = "--dtype", .remedy = "leave it out"});
  }
  if (device.is_cpu()) return at::kFloat;
  return name == "fp16" ? at::kHalf : at::kBFloat16;
}

const char* dtype_name(at::ScalarType dtype) {
  return dtype == at::kFloat ? "fp32" : dtype == at::kHalf ? "fp16" : "bf16";
}

std::optional<QuantizedKind> base_format(const std::string& name) {
  if (name == "model") return std::nullopt;
  ANTISD_CHECK(name == "int8" || name == "nf4");
  return name == "int8" ? QuantizedKind::kInt8 : QuantizedKind::kNf4;
}

CausalLm::CausalLm(ModelShape shape, at::Device device, at::ScalarType dtype)
    : CausalLm(shape, device, dtype, ParameterStore(parameter_specs(shape), device, dtype)) {}

CausalLm::CausalLm(const CausalLm& adapted, std::optional<LoraShape> lora, at::ScalarType dtype)
    : CausalLm(with_adapters(adapted.shape_, lora), adapted.device_, dtype,
               ParameterStore(parameter_specs(with_adapters(adapted.shape_, lora)),
                              adapted.parameters_, adapted.device_, dtype)) {}

CausalLm::CausalLm(ModelShape shape, at::Device device, at::ScalarType dtype,
                   ParameterStore parameters)
    : shape_(std::move(shape)),
      device_(device),
      dtype_(dtype),
      parameters_(std::move(parameters)),
      embedding_(parameters_.at("embedding").value),
      final_norm_(parameters_.at("final_norm").value),
      head_{shape_.tied_head ? embedding_ : parameters_.at("head").value, {}} {
  // Partial sums of split-K products are added in fp32.
  if (dtype == at::kHalf && device.is_cuda())
    at::globalContext().setAllowFP16ReductionCuBLAS(/*allow_reduced_precision=*/false);
  for (std::size_t i = 0; i < shape_.layers.size(); ++i)
    layers_.push_back(layer_weights(parameters_, shape_, i));
  // The panel path would ignore weights that it does not know.
  for (const LayerWeights& layer : layers_)
    ANTISD_CHECK(!shape_.architecture->panel_form || layer.others.empty());
}

RopeTable CausalLm::rope_table(const RopeSettings& settings, std::int64_t positions) const {
  const std::lock_guard lock(ropes_->mutex);
  auto& tables = ropes_->tables;
  auto cached = std::find_if(tables.begin(), tables.end(),
                             [&](const auto& entry) { return entry.first == settings; });
  if (cached == tables.end()) cached = tables.insert(cached, {settings, {}});
  RopeTable& table = cached->second;
  if (table.cosine.defined() && table.cosine.size(0) >= positions) return table;
  const std::int64_t rows = std::min(std::max<std::int64_t>(2 * positions, 512),
                                     std::max(shape_.max_positions, positions));
  const std::vector<double> frequencies = rope_frequencies(settings, shape_.head_dim);
  // Angles as in transformers: position times frequency in fp32.
  const at::Tensor frequency =
      at::tensor(at::ArrayRef<double>(frequencies), at::kDouble).to(at::kFloat);
  const at::Tensor angles = at::arange(rows, at::kFloat).unsqueeze(1) * frequency.unsqueeze(0);
  const double scale = settings.attention_factor;
  table = {(angles.cos() * scale).to(device_), (angles.sin() * scale).to(device_)};
  return table;
}

void CausalLm::reserve_positions(std::int64_t positions) const {
  for (const LayerShape& layer : shape_.layers)
    rope_table(layer.rope, positions);
}

void CausalLm::check_ids(const PackedBatch& batch) const {
  if (batch.smallest_id < 0 || batch.largest_id >= shape_.vocabulary) {
    throw InputError(fmt::format("the sequences hold ids {} to {}; the model knows ids 0 to {}",
                                 batch.smallest_id, batch.largest_id, shape_.vocabulary - 1),
                     {.remedy = "use the tokenizer of this model"});
  }
}

void CausalLm::check_length(std::int64_t longest_sequence) const {
  if (longest_sequence > shape_.max_positions) {
    throw InputError(
        fmt::format("a sequence of {} tokens; the model has {} positions (max_position_embeddings)",
                    longest_sequence, shape_.max_positions),
        {.remedy = "shorten the prompt or lower the number of tokens"});
  }
}

double CausalLm::attention_scale() const {
  return 1.0 / std::sqrt(static_cast<double>(shape_.head_dim));
}

void CausalLm::run_layer(std::size_t index, ResidualStream& x, const Tokens& tokens,
                         const Attend& attend) const {
  const LayerShape& layer = shape_.layers[index];
  const RopeTable rope = rope_table(layer.rope, tokens.longest_sequence);
  const LayerInputs inputs{shape_, layer, rope, tokens.positions, attend, tokens.cache};
  shape_.architecture->layer(x, layers_[index], inputs);
}

void CausalLm::run_packed(std::size_t index, ResidualStream& x, const PackedBatch& batch, Pass pass,
                          AttentionKept* kept) const {
  run_layer(index, x, {batch.positions, batch.longest_sequence},
            [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
              return attention(q, k, v, batch.layout, shape_.layers[index].window,
                               attention_scale(), gradients_of(pass), kept);
            });
}

// The stream after the first `layers` layers, each of which the backward pass recomputes.
at::Tensor CausalLm::run_recomputed(at::Tensor x, const PackedBatch& batch,
                                    std::size_t layers) const {
  // A recomputed layer has a gradient where its input has one, also above a frozen embedding.
  if (!x.requires_grad()) x.requires_grad_(true);
  // One copy of the batch is kept until the backward pass, for all layers.
  const auto kept = std::make_shared<const PackedBatch>(batch);
  for (std::size_t i = 0; i < layers; ++i) {
    const auto layer = [this, i, kept, attended = std::make_shared<AttentionKept>()](
                           const at::Tensor& input, Pass part) {
      const LayerInUse here = use_layer(i);
      ResidualStream stream(input, /*own=*/false, part);
      run_packed(i, stream, *kept, part, attended.get());
      return stream.value();
    };
    const auto hold = [this, i] {
      return std::make_shared<LayerInUse>(layer_source_, i, Direction::kDown);
    };
    x = checkpointed(layer, x, hold);
  }
  return x;
}

at::Tensor CausalLm::hidden_states(const PackedBatch& batch, Pass pass, std::size_t kept) const {
  check_ids(batch);
  check_length(batch.longest_sequence);
  const at::AutoGradMode recording(gradients_of(pass) == Gradients::kRecorded);
  if (pass == Pass::kInference && suits_dense_forward(*this)) {
    return dense_forward(*this, dense_tokens(batch.ids, batch.positions),
                         [&](std::size_t i, const auto& q, const auto& k, const auto& v) {
                           return attention(q, k, v, batch.layout, shape_.layers[i].window,
                                            attention_scale(), Gradients::kNone);
                         });
  }
  const std::size_t recomputed =
      pass == Pass::kRecomputed ? layers_.size() - std::min(kept, layers_.size()) : 0;
  // The backward pass fetches only layers that it recomputes.
  ANTISD_CHECK(pass == Pass::kInference || recomputed == layers_.size() || has_all_layers());
  const at::Tensor x =
      run_recomputed(at::embedding(embedding_, batch.ids), batch, recomputed);  // [tokens, hidden]
  const Pass rest = pass == Pass::kRecomputed ? Pass::kTraining : pass;
  ResidualStream stream(x, /*own=*/recomputed == 0, rest);
  LayerWalk walk(layer_source_);
  for (std::size_t i = recomputed; i < layers_.size(); ++i) {
    walk.enter(i);
    run_packed(i, stream, batch, rest, nullptr);
  }
  return stream.normed(final_norm_, shape_.norm_eps);
}

void CausalLm::extend(const CacheExtension& tokens, const KvView& cache) const {
  const at::NoGradGuard no_grad;
  check_length(tokens.longest_sequence);
  ANTISD_CHECK_EQ(cache.size(), layers_.size());
  const auto attend = [&](std::size_t i, const at::Tensor& q) {
    const std::vector<std::int64_t> rows = {-1, shape_.kv_heads, shape_.head_dim};
    return attention(q, cache[i].keys.view(rows), cache[i].values.view(rows), tokens.layout,
                     shape_.layers[i].window, attention_scale(), Gradients::kNone);
  };
  if (suits_dense_forward(*this)) {
    dense_forward(*this, dense_tokens(tokens.ids, tokens.positions),
                  [&](std::size_t i, const auto& q, const auto& k, const auto& v) {
                    store_kv(k, v, tokens.slots, cache[i]);
                    return i + 1 < layers_.size() ? attend(i, q) : at::Tensor();
                  });
    return;
  }
  ResidualStream x(at::embedding(embedding_, tokens.ids), /*own=*/true, Pass::kInference);
  LayerWalk walk(layer_source_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    walk.enter(i);
    const CacheTarget target{cache[i], tokens.slots};
    run_layer(
        i, x, {tokens.positions, tokens.longest_sequence, &target},
        [&](const at::Tensor& q, const at::Tensor&, const at::Tensor&) { return attend(i, q); });
  }
}

at::Tensor CausalLm::decode(const DecodeStep& step, const KvView& cache) const {
  const at::NoGradGuard no_grad;
  check_length(step.longest_sequence);
  ANTISD_CHECK_EQ(cache.size(), layers_.size());
  ResidualStream x(at::embedding(embedding_, step.ids), /*own=*/true, Pass::kInference);
  LayerWalk walk(layer_source_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    walk.enter(i);
    const CacheTarget target{cache[i], step.slots};
    run_layer(i, x, {step.positions, step.longest_sequence, &target},
              [&](const at::Tensor& q, const at::Tensor&, const at::Tensor&) {
                return decode_attention(q, cache[i], step.table, shape_.layers[i].window,
                                        attention_scale());
              });
  }
  return x.normed(final_norm_, shape_.norm_eps);
}

}  // namespace antisd::inline model
