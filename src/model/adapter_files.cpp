#include "model/adapter_files.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "core/rng.h"
#include "hub/cache.h"
#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "model/config_fields.h"
#include "model/file_tensors.h"

namespace antisd::inline model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigName = "adapter_config.json";
constexpr const char* kWeightsName = "adapter_model.safetensors";
constexpr const char* kPrefix = "base_model.model.";
constexpr const char* kDown = ".lora_A.weight";
constexpr const char* kUp = ".lora_B.weight";

// Fields that change the maths unless they are null, false or empty.
constexpr const char* kRefused[] = {"use_dora",          "lora_bias",
                                    "fan_in_fan_out",    "modules_to_save",
                                    "target_parameters", "trainable_token_indices",
                                    "layer_replication", "alora_invocation_tokens",
                                    "use_qalora",        "use_bdlora",
                                    "arrow_config",      "kasa_config",
                                    "monteclora_config", "velora_config"};

// Ways to begin that leave the base changed, so that the adapter does not fit the base itself.
constexpr const char* kOtherBases[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};

bool is_off(const Json& value) {
  return value.is_null() || value == false || (value.is_structured() && value.empty());
}

void refuse_unknown(const ConfigFields& fields) {
  const Json* type = fields.find("peft_type");
  if (type == nullptr || *type != "LORA")
    fields.wrong("peft_type", type ? *type : Json(nullptr), "\"LORA\"");
  for (const char* name : kRefused) {
    const Json* value = fields.find(name);
    if (value != nullptr && !is_off(*value)) fields.wrong(name, *value, "none: it is not known");
  }
  if (const Json* bias = fields.find("bias"); bias != nullptr && *bias != "none")
    fields.wrong("bias", *bias, "\"none\"");
  const Json* start = fields.find("init_lora_weights");
  if (start == nullptr || !start->is_string()) return;
  for (const char* name : kOtherBases) {
    if (start->get<std::string>().starts_with(name))
      fields.wrong("init_lora_weights", *start, "one that leaves the base as it is");
  }
}

// PEFT's rule: the first pattern that matches the end of the module's name, from a dot on.
double value_for(const ConfigFields& fields, const char* patterns, const std::string& module,
                 double otherwise) {
  const Json* table = fields.find(patterns);
  if (table == nullptr) return otherwise;
  if (!table->is_object()) fields.wrong(patterns, *table, "a table of numbers");
  for (const auto& [pattern, value] : table->items()) {
    if (!value.is_number()) fields.wrong(patterns, value, "a number");
    try {
      if (std::regex_match(module, std::regex("(.*\\.)?(" + pattern + ")")))
        return value.get<double>();
    } catch (const std::regex_error&) {
      fields.wrong(patterns, pattern, "a regular expression");
    }
  }
  return otherwise;
}

[[noreturn]] void refuse_tensor(const fs::path& file, const std::string& name,
                                const std::string& why) {
  throw InputError(
      fmt::format("the tensor {} {}", name, why),
      {.where = file.string(), .remedy = "use an adapter of this model's projections"});
}

// The matrices A of the file, by the names of their modules.
std::vector<std::pair<std::string, const SafetensorsTensor*>> down_projections(
    const SafetensorsFile& file) {
  std::vector<std::pair<std::string, const SafetensorsTensor*>> found;
  for (const SafetensorsTensor& tensor : file.tensors()) {
    const std::string& name = tensor.name;
    if (name.starts_with(kPrefix) && name.ends_with(kUp)) continue;
    if (!name.starts_with(kPrefix) || !name.ends_with(kDown))
      refuse_tensor(file.path(), name, "is no part of a projection's adapter");
    if (tensor.shape.size() != 2 || tensor.shape[0] == 0)
      refuse_tensor(file.path(), name, "is not a matrix");
    found.emplace_back(name.substr(0, name.size() - std::string_view(kDown).size()), &tensor);
  }
  return found;
}

// A slice's pair in the file.
struct AdapterSource {
  const SafetensorsTensor* tensor = nullptr;  // null: it adds nothing
  double scale = 1;
};

// Fills a slice whose rank, its size in dimension `rank_at`, may be larger than the source's; the
// rest is 0.
void fill_slice(at::Tensor target, std::size_t rank_at, const AdapterSource& source,
                const fs::path& file) {
  target.zero_();
  if (source.tensor == nullptr) return;
  const std::vector<std::int64_t>& sizes = source.tensor->shape;
  if (!scalar_type(source.tensor->type))
    refuse_tensor(file, source.tensor->name, "is neither F32, F16 nor BF16");
  const auto rank_dim = static_cast<std::int64_t>(rank_at);
  if (sizes.size() != 2 || sizes[rank_at] > target.size(rank_dim) ||
      sizes[1 - rank_at] != target.size(1 - rank_dim)) {
    refuse_tensor(file, source.tensor->name,
                  fmt::format("is [{}] where the model has [{}]", fmt::join(sizes, ", "),
                              fmt::join(target.sizes(), ", ")));
  }
  at::Tensor values = tensor_of(*source.tensor);
  if (source.scale != 1) values = values.to(at::kFloat) * source.scale;
  target.narrow(rank_dim, 0, sizes[rank_at]).copy_(values);
}

// The projections that have adapters, by the last part of their names.
std::vector<std::string> target_modules(const CausalLm& model) {
  std::set<std::string> names;
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.spec.kind != ParameterKind::kLoraA) continue;
    for (const WeightSlice& slice : parameter.spec.slices) {
      const std::string module =
          slice.name.substr(0, slice.name.size() - std::string_view(kDown).size());
      names.insert(module.substr(module.rfind('.') + 1));
    }
  }
  return {names.begin(), names.end()};
}

Json whole_if_possible(double number) {
  if (number == std::floor(number) && std::abs(number) < 1e9)
    return static_cast<std::int64_t>(number);
  return number;
}

void write_adapter_config(const CausalLm& model, const fs::path& base, const fs::path& file) {
  const LoraShape& lora = *model.shape().lora;
  const std::optional<Snapshot> snapshot = snapshot_of(base);  // others find it by its name
  const Json config = {{"alpha_pattern", Json::object()},
                       {"auto_mapping", nullptr},
                       {"base_model_name_or_path", snapshot ? snapshot->repo.name : base.string()},
                       {"bias", "none"},
                       {"fan_in_fan_out", false},
                       {"inference_mode", true},
                       {"init_lora_weights", true},
                       {"layers_pattern", nullptr},
                       {"layers_to_transform", nullptr},
                       {"lora_alpha", whole_if_possible(lora.alpha)},
                       {"lora_dropout", 0.0},
                       {"modules_to_save", nullptr},
                       {"peft_type", "LORA"},
                       {"r", lora.rank},
                       {"rank_pattern", Json::object()},
                       {"revision", snapshot ? Json(snapshot->repo.revision) : Json()},
                       {"target_modules", target_modules(model)},
                       {"task_type", "CAUSAL_LM"},
                       {"use_dora", false},
                       {"use_rslora", false}};
  write_file_atomically(file, config.dump(2) + "\n");
}

// A name of the hub, with the revision that stands beside it, or a path.
std::string named_base(const std::string& base, const ConfigFields& fields) {
  const Json* revision = fields.find("revision");
  std::error_code ignored;
  if (revision == nullptr || !revision->is_string() || fs::exists(base, ignored)) return base;
  const std::string named = base + "@" + revision->get<std::string>();
  return parse_repo_name(RepoType::kModel, named) ? named : base;
}

std::vector<StoredTensor> adapter_tensors(const CausalLm& model) {
  std::vector<StoredTensor> tensors = model.parameters().stored_tensors();
  std::erase_if(tensors, [](const StoredTensor& t) { return !t.parameter->spec.is_adapter(); });
  return tensors;
}

// weight[rows of a part] += scale b a, of one matrix or one expert.
void merge_matrix(at::Tensor weight, const LoraWeights& lora, const at::Tensor& a,
                  const at::Tensor& b) {
  const std::int64_t rank = lora.rank();
  std::int64_t a_at = 0, b_at = 0;
  for (const LoraPart& part : lora.parts) {
    weight.narrow(0, part.first_row, part.rows)
        .addmm_(b.narrow(0, b_at, part.rows), a.narrow(0, a_at, rank), 1, lora.scale);
    a_at += rank;
    b_at += part.rows;
  }
}

void merge_linear(const Linear& linear) {
  if (!linear.adapter) return;
  const LoraWeights& lora = *linear.adapter;
  if (lora.a.dim() == 2) return merge_matrix(linear.weight, lora, lora.a, lora.b);
  for (std::int64_t expert = 0; expert < lora.a.size(0); ++expert) {
    merge_matrix(linear.weight.select(0, expert), lora, lora.a.select(0, expert),
                 lora.b.select(0, expert));
  }
}

}  // namespace

bool is_adapter_directory(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / kConfigName, ignored);
}

fs::path adapter_weights_file(const fs::path& directory) {
  return directory / kWeightsName;
}

AdapterConfig read_adapter_config(const fs::path& directory) {
  const fs::path path = directory / kConfigName;
  const Json json = parse_json(read_file(path), path.string());
  const ConfigFields fields(json, path.string());
  refuse_unknown(fields);
  AdapterConfig adapter{.directory = directory};
  if (const Json* base = fields.find("base_model_name_or_path"); base && base->is_string())
    adapter.base = named_base(base->get<std::string>(), fields);
  const double alpha = fields.number("lora_alpha", 8);
  const bool by_root = fields.boolean("use_rslora", false);
  const auto scale_of = [&](double a, std::int64_t rank) {
    return a / (by_root ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
  };
  const SafetensorsFile file(directory / kWeightsName);
  std::set<std::string> targets;
  const auto modules = down_projections(file);
  if (modules.empty())
    throw InputError("it holds no adapter",
                     {.where = file.path().string(), .remedy = "save it again"});
  for (const auto& [name, a] : modules) {
    adapter.lora.rank = std::max(adapter.lora.rank, a->shape[0]);
    adapter.lora.experts |= name.find(".experts.") != std::string::npos;
    targets.insert(name.substr(name.rfind('.') + 1));
  }
  adapter.lora.targets.assign(targets.begin(), targets.end());
  const std::int64_t rank = adapter.lora.rank;
  adapter.lora.alpha = by_root ? alpha * std::sqrt(static_cast<double>(rank)) : alpha;
  for (const auto& [name, a] : modules) {
    const std::string module = name.substr(std::string_view(kPrefix).size());
    const double own = scale_of(value_for(fields, "alpha_pattern", module, alpha), a->shape[0]);
    adapter.scales[name] = own / scale_of(alpha, rank);
  }
  return adapter;
}

fs::path base_directory(const fs::path& model, const fs::path& chosen) {
  if (!is_adapter_directory(model)) return model;
  const fs::path base =
      model_folder((chosen.empty() ? read_adapter_config(model).base : chosen).string());
  std::error_code ignored;
  if (!base.empty() && fs::exists(base / "config.json", ignored)) return base;
  throw InputError(base.empty()
                       ? std::string("the adapter names no base model")
                       : fmt::format("the adapter's base model {} is not here", base.string()),
                   {.where = (model / kConfigName).string(), .remedy = "name it with --base DIR"});
}

void load_adapter(CausalLm& model, const AdapterConfig& adapter) {
  const at::NoGradGuard no_grad;
  const SafetensorsFile file(adapter.directory / kWeightsName);
  std::size_t used = 0;
  for (const auto& [parameter, slice] : adapter_tensors(model)) {
    const bool is_up = parameter->spec.kind == ParameterKind::kLoraB;
    const std::size_t suffix = std::string_view(kDown).size();
    const auto scale = adapter.scales.find(slice->name.substr(0, slice->name.size() - suffix));
    AdapterSource source;
    if (scale != adapter.scales.end()) {
      source = {file.find(slice->name), is_up ? scale->second : 1};
      if (source.tensor == nullptr) refuse_tensor(file.path(), slice->name, "is missing");
      ++used;
    }
    fill_slice(slice->of(parameter->value), is_up ? 1 : 0, source, file.path());
  }
  if (used == file.tensors().size()) return;
  const std::vector<StoredTensor> known = adapter_tensors(model);
  for (const SafetensorsTensor& tensor : file.tensors()) {
    if (std::ranges::none_of(known, [&](const auto& k) { return k.slice->name == tensor.name; }))
      refuse_tensor(file.path(), tensor.name, "belongs to no projection of the model");
  }
}

void save_adapter(const CausalLm& model, const fs::path& base, const fs::path& directory) {
  fs::create_directories(directory);
  const std::vector<StoredTensor> tensors = adapter_tensors(model);
  std::vector<TensorSpec> specs;
  for (const StoredTensor& tensor : tensors)
    specs.push_back({tensor.slice->name, tensor_type(model.dtype()), tensor.slice->sizes});
  SafetensorsWriter writer(directory / kWeightsName, specs);
  for (const auto& [parameter, slice] : tensors) {
    const at::Tensor part = slice->of(parameter->value.detach()).contiguous().to(at::kCPU);
    writer.write(slice->name,
                 {static_cast<const std::byte*>(part.const_data_ptr()), part.nbytes()});
  }
  writer.finish();
  write_adapter_config(model, base, directory / kConfigName);
}

void initialise_adapters(CausalLm& model, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  const CounterRng rng(seed, RandomStream::kInitialise);
  std::uint32_t number = 0;
  for (Parameter& parameter : model.parameters()) {
    if (!parameter.spec.is_adapter()) continue;
    if (parameter.spec.kind == ParameterKind::kLoraB) {
      parameter.value.zero_();
      continue;
    }
    at::Tensor values = at::empty(parameter.spec.sizes, at::kFloat);
    const double bound = 1 / std::sqrt(static_cast<double>(parameter.spec.sizes.back()));
    float* to = values.mutable_data_ptr<float>();
    at::parallel_for(0, values.numel(), 4096, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const double u = rng.uniform({.prompt = number, .position = static_cast<std::uint32_t>(i)});
        to[i] = static_cast<float>(bound * (2 * u - 1));
      }
    });
    parameter.value.copy_(values);
    ++number;
  }
}

void merge_adapters(CausalLm& model) {
  const at::NoGradGuard no_grad;
  for (const LayerWeights& layer : model.layers()) {
    for (const Linear* linear : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down,
                                 &layer.experts.gate_up, &layer.experts.down})
      merge_linear(*linear);
  }
}

BaseModel identify_base(const fs::path& directory) {
  Checksum sum;
  const SafetensorsDirectory files(directory);
  for (const SafetensorsFile& file : files.files())
    sum.add(checksum_of_file(file.path()));
  return {fs::absolute(directory).lexically_normal(), sum.hex()};
}

}  // namespace antisd::inline model
