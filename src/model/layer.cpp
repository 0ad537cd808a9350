#include "model/layer.h"

#include <algorithm>

#include "model/layer_parameters.h"
#include "ops/swiglu.h"

namespace antisd::inline model {
namespace {

// The rows of `weight` whose adapters `b` holds.
std::vector<LoraPart> adapted_rows(const ParameterSpec& weight, const ParameterSpec& b) {
  std::vector<LoraPart> parts;
  for (const WeightSlice& slice : weight.slices) {
    if (slice.expert > 0) break;  // those of the others are the same
    const std::string name = adapter_tensor('B', slice.name);
    if (std::ranges::find(b.slices, name, &WeightSlice::name) != b.slices.end())
      parts.push_back({slice.first_row, slice.sizes[0]});
  }
  return parts;
}

}  // namespace

LayerWeights layer_weights(const ParameterStore& store, const ModelShape& shape,
                           std::size_t layer) {
  const ParameterBlock& block = store.blocks()[layer + 1];  // the first one is the embedding
  LayerWeights w;
  std::map<std::string, QuantizedWeight> quantized;
  for (const Parameter& parameter : store.of(block)) {
    const std::string name = parameter.name().substr(block.name.size() + 1);
    if (parameter.quantized.defined()) {
      quantized[name] = parameter.quantized;
    } else {
      w.others[name] = parameter.value;
    }
  }
  const auto take = [&](const std::string& name) {
    auto found = w.others.extract(name);
    return found ? found.mapped() : at::Tensor();
  };
  const auto linear = [&](const std::string& name) {
    Linear linear{take(name), take(name + "_bias"), quantized[name]};
    const at::Tensor a = take(name + "_lora_a");
    if (!a.defined()) return linear;
    const std::string weight = block.name + "." + name, b = weight + "_lora_b";
    linear.adapter = std::make_shared<LoraWeights>(
        LoraWeights{a, take(name + "_lora_b"),
                    adapted_rows(store.at(weight).spec, store.at(b).spec), shape.lora->scale()});
    return linear;
  };
  w.first_norm = take("first_norm");
  w.second_norm = take("second_norm");
  w.qkv = linear("qkv");
  w.q_norm = take("q_norm");
  w.k_norm = take("k_norm");
  w.output = linear("output");
  w.gate_up = linear("gate_up");
  w.down = linear("down");
  w.experts = {linear("router"), linear("experts_gate_up"), linear("experts_down")};
  return w;
}

Product self_attention(const at::Tensor& x, const LayerWeights& w, QkNorm norm,
                       const LayerInputs& in) {
  const ModelShape& shape = in.shape;
  const at::Tensor qkv = apply(w.qkv, x);  // [tokens, (heads + 2 kv_heads) head_dim]
  const AttentionShape heads{shape.heads, shape.kv_heads, shape.head_dim};
  at::Tensor mixed;  // [tokens, heads, head_dim]
  if (in.cache != nullptr) {
    mixed = in.attend(attention_inputs_to_cache(qkv, heads, norm, w.q_norm, w.k_norm,
                                                shape.norm_eps, in.rope, in.positions, *in.cache),
                      {}, {});
  } else {
    const auto [q, k, v] = attention_inputs(qkv, heads, norm, w.q_norm, w.k_norm, shape.norm_eps,
                                            in.rope, in.positions);
    mixed = in.attend(q, k, v);
  }
  return {mixed.flatten(1), w.output};
}

Product gated_unit(const at::Tensor& x, const LayerWeights& w) {
  const at::Tensor units = swiglu(apply(w.gate_up, x));  // [tokens, intermediate]
  return {units, w.down};
}

}  // namespace antisd::inline model
