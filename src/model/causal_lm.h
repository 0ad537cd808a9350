// A decoder-only language model: ids in, hidden states out. One copy of the weights serves scoring,
// sampling and the update. Several threads may call hidden_states at once.
//
//   CausalLm model = load_model("Qwen3-8B", at::kCUDA, compute_dtype(at::kCUDA));
//   const at::Tensor hidden = model.hidden_states(pack(sequences, model.device()));
//   const auto scores = token_scores(hidden, model.head().weight, targets, temperature,
//                                    model.shape().vocabulary);
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "model/kv_view.h"
#include "model/layer.h"
#include "model/packed_batch.h"

namespace antisd::inline model {

// The one rule on precision: a CPU computes in fp32; a GPU in bf16, or where asked in fp16, which
// rounds eight times less but ends at 65504. Training keeps fp32 masters beside weights of 16 bits;
// inference has the compute copy alone. `name`: "auto", "fp32", "bf16" or "fp16"; InputError where
// the device does not compute in it.
at::ScalarType compute_dtype(at::Device device, const std::string& name = "auto");
const char* dtype_name(at::ScalarType dtype);  // "fp32", "bf16", "fp16"

class CausalLm {
 public:
  // Weights are there but not set. InputError for experts in fp16.
  CausalLm(ModelShape shape, at::Device device, at::ScalarType dtype);

  const ModelShape& shape() const { return shape_; }
  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }

  // [tokens, hidden], after the last norm. With kRecomputed, the backward pass computes each layer
  // again instead of keeping its intermediate values, attention's result aside. InputError for ids
  // outside the vocabulary or sequences that are too long.
  at::Tensor hidden_states(const PackedBatch& batch, Pass pass = Pass::kInference) const;

  // Tokens that follow others in a cache: their keys and values are stored there, then attention
  // reads the cache. extend() does no more; decode() yields [rows, hidden], after the last norm. No
  // gradients. ids are checked by the caller.
  void extend(const CacheExtension& tokens, const KvView& cache) const;
  at::Tensor decode(const DecodeStep& step, const KvView& cache) const;

  // Makes the rotary tables of positions [0, positions) now, so that no later pass up to there
  // moves them: a captured graph keeps their addresses.
  void reserve_positions(std::int64_t positions) const;
  RopeTable rope(std::size_t layer, std::int64_t positions) const {
    return rope_table(shape_.layers[layer].rope, positions);
  }

  const at::Tensor& embedding() const { return embedding_; }
  const at::Tensor& final_norm() const { return final_norm_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  // [vocabulary, hidden], without a bias; the embedding itself where the head is tied.
  const Linear& head() const { return head_; }

  ParameterStore& parameters() { return parameters_; }
  const ParameterStore& parameters() const { return parameters_; }

 private:
  // What the layers need to know of the tokens that run through them.
  struct Tokens {
    const at::Tensor& positions;
    std::int64_t longest_sequence;
    const CacheTarget* cache = nullptr;
  };
  void run_layer(std::size_t index, ResidualStream& x, const Tokens& tokens,
                 const Attend& attend) const;
  void run_packed(std::size_t index, ResidualStream& x, const PackedBatch& batch, Pass pass,
                  AttentionKept* kept) const;
  RopeTable rope_table(const RopeSettings& settings, std::int64_t positions) const;
  void check_ids(const PackedBatch& batch) const;
  void check_length(std::int64_t longest_sequence) const;
  double attention_scale() const;

  ModelShape shape_;
  at::Device device_;
  at::ScalarType dtype_;
  ParameterStore parameters_;
  // Borrowed from it.
  at::Tensor embedding_, final_norm_;
  std::vector<LayerWeights> layers_;
  Linear head_;
  // Tables by settings, made when a longer one is first needed; several threads may score at once.
  struct RopeCache {
    std::mutex mutex;
    std::vector<std::pair<RopeSettings, RopeTable>> tables;
  };
  std::unique_ptr<RopeCache> ropes_ = std::make_unique<RopeCache>();
};

}  // namespace antisd::inline model
