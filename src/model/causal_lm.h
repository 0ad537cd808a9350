// A decoder-only language model: ids in, hidden states out. Scoring, sampling and the update share
// one copy of the weights. Several threads may call hidden_states at once.
//
//   CausalLm model = load_model("Qwen3-8B", at::kCUDA, compute_dtype(at::kCUDA));
//   const at::Tensor hidden = model.hidden_states(pack(sequences, model.device()));
//   const auto scores = token_scores(hidden, model.head().weight, targets, temperature,
//                                    model.shape().vocabulary, Gradients::kNone);
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "model/kv_view.h"
#include "model/layer.h"
#include "model/layer_source.h"
#include "model/packed_batch.h"

namespace antisd::inline model {

// The rule on precision: a CPU computes in fp32; a GPU in bf16 or, on request, in fp16, which has
// three more bits of mantissa but ends at 65504. Training keeps fp32 masters beside 16-bit weights;
// inference has only the compute copy. `name`: "auto", "fp32", "bf16" or "fp16"; InputError if the
// device does not support it.
at::ScalarType compute_dtype(at::Device device, const std::string& name = "auto");
const char* dtype_name(at::ScalarType dtype);  // "fp32", "bf16", "fp16"
// The format of the layers' matrices (ModelShape::base); `name`: "model", "int8" or "nf4".
std::optional<QuantizedKind> base_format(const std::string& name);

class CausalLm {
 public:
  // Allocates the weights without values.
  CausalLm(ModelShape shape, at::Device device, at::ScalarType dtype);
  // The model below the adapters of `adapted`, with its memory, and with adapters of its own if
  // there are any: `dtype` is theirs. Without them it is the model that training began with.
  CausalLm(const CausalLm& adapted, std::optional<LoraShape> lora, at::ScalarType dtype);

  const ModelShape& shape() const { return shape_; }
  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }

  // [tokens, hidden], after the last norm. With kRecomputed, the backward pass recomputes layers
  // instead of keeping their activations, except attention's result: all but the last `kept`. Those
  // are the ones to keep: the backward pass begins with them, so that they have freed theirs when
  // the first layer is recomputed. If the first ones were kept, their activations would be there
  // together with the recomputed ones of the last layer, and the peak higher by these.
  // InputError for ids outside the vocabulary or sequences that are too long.
  at::Tensor hidden_states(const PackedBatch& batch, Pass pass = Pass::kInference,
                           std::size_t kept = 0) const;

  // New tokens after those in a cache: their keys and values are stored, then attention reads the
  // cache. extend() does only that; decode() returns [rows, hidden], after the last norm. No
  // gradients. The caller checks the ids.
  void extend(const CacheExtension& tokens, const KvView& cache) const;
  at::Tensor decode(const DecodeStep& step, const KvView& cache) const;

  // Creates the rotary tables for positions [0, positions) now, so that no later pass up to there
  // reallocates them: a captured graph keeps their addresses.
  void reserve_positions(std::int64_t positions) const;
  RopeTable rope(std::size_t layer, std::int64_t positions) const {
    return rope_table(shape_.layers[layer].rope, positions);
  }

  // Where layers' values come from, from now on; null: they are always there. Borrowed.
  void set_layer_source(LayerSource* source) { layer_source_ = source; }
  LayerSource* layer_source() const { return layer_source_; }
  bool has_all_layers() const { return !layer_source_ || layer_source_->has_all(); }
  // As those of the source.
  void make_passes(std::optional<int> passes, const std::function<void()>& work) const {
    layer_source_ ? layer_source_->make_passes(passes, work) : work();
  }
  void change_layer(std::optional<std::size_t> layer, const std::function<void()>& change) const {
    layer&& layer_source_ ? layer_source_->change(*layer, change) : change();
  }
  LayerInUse use_layer(std::size_t layer, Direction direction = Direction::kUp) const {
    return {layer_source_, layer, direction};
  }

  const at::Tensor& embedding() const { return embedding_; }
  const at::Tensor& final_norm() const { return final_norm_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  // [vocabulary, hidden], without a bias; the embedding itself if the head is tied.
  const Linear& head() const { return head_; }

  ParameterStore& parameters() { return parameters_; }
  const ParameterStore& parameters() const { return parameters_; }

 private:
  CausalLm(ModelShape shape, at::Device device, at::ScalarType dtype, ParameterStore parameters);

  // The token information that layers need.
  struct Tokens {
    const at::Tensor& positions;
    std::int64_t longest_sequence;
    const CacheTarget* cache = nullptr;
  };
  void run_layer(std::size_t index, ResidualStream& x, const Tokens& tokens,
                 const Attend& attend) const;
  void run_packed(std::size_t index, ResidualStream& x, const PackedBatch& batch, Pass pass,
                  AttentionKept* kept) const;
  at::Tensor run_recomputed(at::Tensor x, const PackedBatch& batch, std::size_t layers) const;
  RopeTable rope_table(const RopeSettings& settings, std::int64_t positions) const;
  void check_ids(const PackedBatch& batch) const;
  void check_length(std::int64_t longest_sequence) const;
  double attention_scale() const;

  ModelShape shape_;
  at::Device device_;
  at::ScalarType dtype_;
  ParameterStore parameters_;
  // Borrowed from the store.
  at::Tensor embedding_, final_norm_;
  std::vector<LayerWeights> layers_;
  Linear head_;
  LayerSource* layer_source_ = nullptr;
  // Tables by settings, extended on demand; several threads may score at once.
  struct RopeCache {
    std::mutex mutex;
    std::vector<std::pair<RopeSettings, RopeTable>> tables;
  };
  std::unique_ptr<RopeCache> ropes_ = std::make_unique<RopeCache>();
};

// The values of a block are there while this lives, as a pass upwards would have them.
class BlockInUse {
 public:
  BlockInUse(const CausalLm& model, const ParameterBlock& block)
      : layer_(block.layer ? model.layer_source() : nullptr, block.layer.value_or(0),
               Direction::kUp) {}

 private:
  LayerInUse layer_;
};

}  // namespace antisd::inline model
