#include "model/layer_parameters.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "core/check.h"
#include "model/architecture.h"

namespace antisd::inline model {
namespace {

// WeightSlice::order: the order of a layer's tensors in files.
constexpr int kNorms = 0, kWeights = 1, kBiases = 2, kHeadNorms = 3, kRouter = 4, kExperts = 5,
              kAdapters = 6;

std::int64_t count_rows(const auto& parts) {
  std::int64_t rows = 0;
  for (const auto& part : parts)
    rows += part.count;
  return rows;
}

auto with_suffix(auto parts, const char* suffix) {
  for (auto& part : parts)
    part.tensor += suffix;
  return parts;
}

}  // namespace

std::string adapter_tensor(char matrix, const std::string& weight_tensor) {
  constexpr std::string_view kSuffix = ".weight";
  ANTISD_CHECK(weight_tensor.ends_with(kSuffix));
  return fmt::format("base_model.model.{}.lora_{}.weight",
                     weight_tensor.substr(0, weight_tensor.size() - kSuffix.size()), matrix);
}

LayerParameters::LayerParameters(const ModelShape& shape, std::size_t layer)
    : shape_(shape),
      layer_(layer),
      prefix_(fmt::format("{}{}.", shape.architecture->layers_prefix, layer)) {}

void LayerParameters::add(const std::string& name, ParameterKind kind, int order,
                          std::vector<std::int64_t> sizes, const std::vector<Rows>& rows) {
  const std::string block = fmt::format("layers.{}", layer_);
  ParameterSpec spec{.name = block + "." + name, .block = block, .sizes = sizes, .kind = kind};
  std::int64_t first = 0;
  for (const Rows& part : rows) {
    sizes[0] = part.count;
    spec.slices.push_back(
        {.name = prefix_ + part.tensor, .first_row = first, .sizes = sizes, .order = order});
    first += part.count;
  }
  specs_.push_back(std::move(spec));
}

void LayerParameters::norm(const std::string& name, const std::string& tensor) {
  add(name, ParameterKind::kNorm, kNorms, {shape_.hidden}, {{tensor + ".weight", shape_.hidden}});
}

void LayerParameters::quantize_last() {
  if (!shape_.base) return;
  specs_.back().quantized = shape_.base;
  specs_.back().trainable = false;
}

void LayerParameters::weight(const std::string& name, std::int64_t inputs,
                             const std::vector<Rows>& projections) {
  add(name, ParameterKind::kMatrix, kWeights, {count_rows(projections), inputs},
      with_suffix(projections, ".weight"));
  quantize_last();
  add_adapters(name, inputs, projections);
}

void LayerParameters::bias(const std::string& name, const std::vector<Rows>& projections) {
  add(name + "_bias", ParameterKind::kBias, kBiases, {count_rows(projections)},
      with_suffix(projections, ".bias"));
}

void LayerParameters::attention(QkNorm norm) {
  const std::int64_t q = shape_.heads * shape_.head_dim, kv = shape_.kv_heads * shape_.head_dim;
  const std::vector<Rows> qkv = {
      {"self_attn.q_proj", q}, {"self_attn.k_proj", kv}, {"self_attn.v_proj", kv}};
  const std::vector<Rows> output = {{"self_attn.o_proj", shape_.hidden}};
  weight("qkv", shape_.hidden, qkv);
  if (shape_.qkv_bias) bias("qkv", qkv);
  if (norm != QkNorm::kNone) {
    const bool by_head = norm == QkNorm::kHead;
    const std::int64_t q_norm = by_head ? shape_.head_dim : q, k_norm = by_head ? q_norm : kv;
    add("q_norm", ParameterKind::kNorm, kHeadNorms, {q_norm},
        {{"self_attn.q_norm.weight", q_norm}});
    add("k_norm", ParameterKind::kNorm, kHeadNorms, {k_norm},
        {{"self_attn.k_norm.weight", k_norm}});
  }
  weight("output", q, output);
  if (shape_.output_bias) bias("output", output);
}

void LayerParameters::gated_unit() {
  const std::int64_t units = shape_.intermediate;
  const std::vector<Rows> gate_up = {{"mlp.gate_proj", units}, {"mlp.up_proj", units}};
  const std::vector<Rows> down = {{"mlp.down_proj", shape_.hidden}};
  weight("gate_up", shape_.hidden, gate_up);
  weight("down", units, down);
  if (!shape_.mlp_bias) return;
  bias("gate_up", gate_up);
  bias("down", down);
}

void LayerParameters::add_experts(const std::string& name, std::int64_t inputs,
                                  const std::vector<Rows>& rows) {
  add(name, ParameterKind::kMatrix, kExperts, {shape_.experts, count_rows(rows), inputs}, {});
  quantize_last();
  for (std::int64_t expert = 0; expert < shape_.experts; ++expert) {
    std::int64_t first = 0;
    for (const Rows& part : rows) {
      specs_.back().slices.push_back(
          {.name = fmt::format("{}mlp.experts.{}.{}.weight", prefix_, expert, part.tensor),
           .expert = expert,
           .first_row = first,
           .sizes = {part.count, inputs},
           .order = kExperts});
      first += part.count;
    }
  }
  add_expert_adapters(name, inputs, rows);
}

auto LayerParameters::adapted(const std::vector<Rows>& rows) const -> std::vector<Rows> {
  std::vector<Rows> named;
  if (!shape_.lora) return named;
  for (const Rows& part : rows) {
    const std::string module = part.tensor.substr(part.tensor.rfind('.') + 1);
    if (std::ranges::find(shape_.lora->targets, module) != shape_.lora->targets.end())
      named.push_back(part);
  }
  return named;
}

void LayerParameters::add_adapters(const std::string& name, std::int64_t inputs,
                                   const std::vector<Rows>& rows) {
  const std::vector<Rows> named = adapted(rows);
  if (named.empty()) return;
  const std::int64_t rank = shape_.lora->rank;
  std::vector<Rows> down = named;
  for (Rows& part : down)
    part.count = rank;
  add(name + "_lora_a", ParameterKind::kLoraA, kAdapters, {count_rows(down), inputs},
      with_suffix(down, ".weight"));
  add(name + "_lora_b", ParameterKind::kLoraB, kAdapters, {count_rows(named), rank},
      with_suffix(named, ".weight"));
  for (WeightSlice& slice : specs_[specs_.size() - 2].slices)
    slice.name = adapter_tensor('A', slice.name);
  for (WeightSlice& slice : specs_.back().slices)
    slice.name = adapter_tensor('B', slice.name);
}

void LayerParameters::add_expert_adapters(const std::string& name, std::int64_t inputs,
                                          const std::vector<Rows>& rows) {
  const std::vector<Rows> named = adapted(rows);
  if (named.empty() || !shape_.lora->experts) return;
  const std::int64_t rank = shape_.lora->rank, parts = std::ssize(named);
  add(name + "_lora_a", ParameterKind::kLoraA, kAdapters, {shape_.experts, parts * rank, inputs},
      {});
  add(name + "_lora_b", ParameterKind::kLoraB, kAdapters, {shape_.experts, count_rows(named), rank},
      {});
  ParameterSpec &a = specs_[specs_.size() - 2], &b = specs_.back();
  for (std::int64_t expert = 0; expert < shape_.experts; ++expert) {
    std::int64_t first_a = 0, first_b = 0;
    for (const Rows& part : named) {
      const std::string tensor =
          fmt::format("{}mlp.experts.{}.{}.weight", prefix_, expert, part.tensor);
      a.slices.push_back({adapter_tensor('A', tensor), expert, first_a, {rank, inputs}, kAdapters});
      b.slices.push_back(
          {adapter_tensor('B', tensor), expert, first_b, {part.count, rank}, kAdapters});
      first_a += rank;
      first_b += part.count;
    }
  }
}

void LayerParameters::experts() {
  const std::int64_t units = shape_.expert_intermediate;
  add("router", ParameterKind::kMatrix, kRouter, {shape_.experts, shape_.hidden},
      {{"mlp.gate.weight", shape_.experts}});
  add_experts("experts_gate_up", shape_.hidden, {{"gate_proj", units}, {"up_proj", units}});
  add_experts("experts_down", units, {{"down_proj", shape_.hidden}});
}

}  // namespace antisd::inline model
