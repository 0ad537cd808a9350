// The parameters of one layer, assembled from the parts that layers have in common. An architecture
// lists its parts in the order of the store.
//
//   void qwen3_parameters(LayerParameters& layer) {
//     layer.norm("first_norm", "input_layernorm");
//     layer.norm("second_norm", "post_attention_layernorm");
//     layer.attention(QkNorm::kHead);
//     layer.gated_unit();
//   }
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/model_shape.h"
#include "model/parameter_spec.h"
#include "ops/attention_inputs.h"

namespace antisd::inline model {

// The names on disk of a weight's adapter, as PEFT gives them: for 'A' and "X.weight"
// "base_model.model.X.lora_A.weight".
std::string adapter_tensor(char matrix, const std::string& weight_tensor);

class LayerParameters {
 public:
  LayerParameters(const ModelShape& shape, std::size_t layer);

  bool is_sparse() const { return shape_.layers[layer_].sparse; }

  // [hidden]; `tensor`: its name on disk, relative to the layer and without ".weight".
  void norm(const std::string& name, const std::string& tensor);
  void attention(QkNorm norm);  // the projections, their biases, the norms of queries and keys
  void gated_unit();
  void experts();

  std::vector<ParameterSpec> take() { return std::move(specs_); }

 private:
  // Rows of a parameter that form a tensor on disk.
  struct Rows {
    std::string tensor;
    std::int64_t count;
  };
  void add(const std::string& name, ParameterKind kind, int order, std::vector<std::int64_t> sizes,
           const std::vector<Rows>& rows);
  void quantize_last();  // the last parameter, if the shape says so
  void weight(const std::string& name, std::int64_t inputs, const std::vector<Rows>& projections);
  void bias(const std::string& name, const std::vector<Rows>& projections);
  void add_experts(const std::string& name, std::int64_t inputs, const std::vector<Rows>& rows);
  // The adapters of those projections that ModelShape::lora names.
  void add_adapters(const std::string& name, std::int64_t inputs, const std::vector<Rows>& rows);
  void add_expert_adapters(const std::string& name, std::int64_t inputs,
                           const std::vector<Rows>& rows);
  std::vector<Rows> adapted(const std::vector<Rows>& rows) const;

  const ModelShape& shape_;
  const std::size_t layer_;
  const std::string prefix_;  // of tensors on disk
  std::vector<ParameterSpec> specs_;
};

}  // namespace antisd::inline model
