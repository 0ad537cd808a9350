#include "model/adapted_shape.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/nearest.h"
#include "model/architecture.h"
#include "model/causal_lm.h"

namespace antisd::inline model {
namespace {

constexpr const char* kTargets = "model.lora.targets";

struct Projection {
  std::int64_t largest_rank = 0;  // of all matrices of that name
  bool only_experts = true;
};

// "model.layers.0.self_attn.q_proj.weight" -> "q_proj".
std::string module_of(const std::string& tensor) {
  const std::size_t end = tensor.rfind('.'), begin = tensor.rfind('.', end - 1) + 1;
  return tensor.substr(begin, end - begin);
}

std::map<std::string, Projection> projections_of(const ModelShape& shape) {
  std::map<std::string, Projection> found;
  for (const ParameterSpec& spec : parameter_specs(shape)) {
    const bool is_projection = spec.kind == ParameterKind::kMatrix &&
                               spec.block.starts_with("layers.") && !spec.name.ends_with(".router");
    if (!is_projection) continue;
    for (const WeightSlice& slice : spec.slices) {
      const std::int64_t rank = std::min(slice.sizes[0], slice.sizes[1]);
      const auto [entry, first] = found.try_emplace(module_of(slice.name), Projection{rank});
      entry->second.largest_rank = std::min(entry->second.largest_rank, rank);
      if (slice.expert < 0) entry->second.only_experts = false;
    }
  }
  return found;
}

[[noreturn]] void refuse_target(const std::string& name,
                                const std::map<std::string, Projection>& known) {
  std::vector<std::string> names;
  for (const auto& [known_name, projection] : known)
    names.push_back(known_name);
  const std::string nearest = nearest_name(name, names);
  throw InputError(fmt::format("the model has no projection '{}'", name),
                   {.where = kTargets,
                    .remedy = nearest.empty() ? fmt::format("it has {}", fmt::join(names, ", "))
                                              : fmt::format("did you mean '{}'?", nearest)});
}

}  // namespace

ModelShape adapted_shape(ModelShape shape, const LoraConfig& config) {
  if (config.rank == 0) return shape;
  const std::map<std::string, Projection> known = projections_of(shape);
  const bool has_experts = std::ranges::any_of(shape.layers, &LayerShape::sparse);
  LoraShape lora{
      .rank = config.rank, .alpha = config.alpha, .experts = config.experts && has_experts};
  for (const std::string& name : config.targets) {
    const auto found = known.find(name);
    if (found == known.end()) refuse_target(name, known);
    if (found->second.only_experts && !config.experts) continue;
    if (std::ranges::find(lora.targets, name) != lora.targets.end()) continue;
    lora.targets.push_back(name);
    if (config.rank > found->second.largest_rank) {
      throw InputError(
          fmt::format("model.lora.rank = {} is more than the {} of {}", config.rank,
                      found->second.largest_rank, name),
          {.where = "model.lora.rank", .remedy = "lower it, or train the whole model"});
    }
  }
  if (lora.targets.empty()) {
    throw InputError("no projection of the model gets an adapter",
                     {.where = kTargets,
                      .remedy = shape.experts > 0 ? "name some, or set model.lora.experts = true"
                                                  : "name some, e.g. [\"q_proj\", \"v_proj\"]"});
  }
  std::ranges::sort(lora.targets);
  shape.lora = std::move(lora);
  return shape;
}

ModelShape configured_shape(ModelShape shape, const ModelConfig& config) {
  shape.base = base_format(config.base_dtype);
  return adapted_shape(std::move(shape), config.lora);
}

}  // namespace antisd::inline model
