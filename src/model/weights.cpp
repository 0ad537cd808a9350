#include "model/weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "core/check.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "model/not_finite.h"

namespace antisd {
namespace {

constexpr std::int64_t kShardBytes = 5'000'000'000;

// Nothing for a type that weights cannot have.
std::optional<at::ScalarType> scalar_type(TensorType type) {
  if (type == TensorType::kF32) return at::kFloat;
  if (type == TensorType::kF16) return at::kHalf;
  if (type == TensorType::kBF16) return at::kBFloat16;
  return std::nullopt;
}

TensorType tensor_type(at::ScalarType type) {
  if (type == at::kFloat) return TensorType::kF32;
  if (type == at::kHalf) return TensorType::kF16;
  ANTISD_CHECK(type == at::kBFloat16);
  return TensorType::kBF16;
}

// A tensor over the mapped bytes, or over a copy where they are not aligned to the element.
at::Tensor tensor_of(const SafetensorsTensor& source) {
  const at::ScalarType type = *scalar_type(source.type);
  const auto options = at::TensorOptions().dtype(type);
  auto* bytes = const_cast<std::byte*>(source.data.data());
  if (reinterpret_cast<std::uintptr_t>(bytes) % c10::elementSize(type) == 0) {
    return at::from_blob(bytes, source.shape, options);
  }
  at::Tensor copy = at::empty(source.shape, options);
  std::memcpy(copy.mutable_data_ptr(), bytes, source.data.size());
  return copy;
}

bool same_values(const SafetensorsTensor& a, const SafetensorsTensor& b) {
  if (a.shape != b.shape || !scalar_type(a.type)) return false;
  if (a.type == b.type) return tensor_of(a).equal(tensor_of(b));
  return tensor_of(a).to(at::kFloat).equal(tensor_of(b).to(at::kFloat));
}

// Tensors of old files that carry nothing.
bool is_harmless_surplus(const std::string& name) {
  return name.ends_with(".rotary_emb.inv_freq");
}

struct Mismatch {
  std::vector<std::string> missing, surplus, misshaped, mistyped;

  void throw_if_any(const std::filesystem::path& directory) const {
    if (missing.empty() && surplus.empty() && misshaped.empty() && mistyped.empty()) return;
    std::string text = "the weights do not fit config.json";
    const auto list = [&](const char* what, const std::vector<std::string>& names) {
      if (names.empty()) return;
      constexpr std::size_t kShown = 20;
      const std::size_t shown = std::min(names.size(), kShown);
      text += fmt::format(
          "; {} {}: {}", names.size(), what,
          fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
      if (shown < names.size()) text += ", ...";
    };
    list("missing", missing);
    list("of another shape", misshaped);
    list("neither F32, F16 nor BF16", mistyped);
    list("that the model does not have", surplus);
    throw InputError(text, {.where = directory.string(),
                            .remedy = "use the config.json and weights of one model"});
  }
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void check_finite(const at::Tensor& tensor, const std::string& name,
                  const std::filesystem::path& directory) {
  if (all_finite(tensor)) return;
  throw InputError(fmt::format("the tensor {} holds NaN or infinity", name),
                   {.where = directory.string(),
                    .remedy = "fetch the weights again, or use an earlier checkpoint"});
}

// After a conversion to fp16: what lies beyond its range is infinite there.
void check_range(const at::Tensor& converted, const std::string& name,
                 const std::filesystem::path& directory) {
  constexpr std::int64_t kPart = 1 << 24;
  const at::Tensor flat = converted.flatten();
  for (std::int64_t begin = 0; begin < flat.size(0); begin += kPart) {
    if (!flat.slice(0, begin, begin + kPart).isinf().any().item<bool>()) continue;
    throw InputError(fmt::format("the tensor {} holds weights beyond 65504, where fp16 ends", name),
                     {.where = directory.string(), .remedy = "compute in bf16"});
  }
}

// Files of the origin that belong to a model directory besides weights and config.
constexpr const char* kCompanionFiles[] = {"tokenizer.json",
                                           "tokenizer_config.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "added_tokens.json",
                                           "tokenizer.model",
                                           "special_tokens_map.json",
                                           "chat_template.jinja",
                                           "chat_template.json",
                                           "generation_config.json"};

}  // namespace

at::Tensor WeightSlice::of(const at::Tensor& whole) const {
  const at::Tensor part = expert < 0 ? whole : whole.select(0, expert);
  return part.narrow(0, first_row, sizes[0]);
}

std::vector<WeightSlice> weight_slices(const CausalLm& model) {
  const ModelShape& s = model.shape();
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < model.parameters().size(); ++i)
    index[model.parameters()[i].name] = i;
  std::vector<WeightSlice> slices;
  // The rows of a parameter go to the named tensors in turn; `rows` -1 is the rest.
  const auto add = [&](const std::string& parameter, std::int64_t expert,
                       std::vector<std::pair<std::string, std::int64_t>> parts) {
    const auto found = index.find(parameter);
    if (found == index.end()) return;
    const at::Tensor& value = model.parameters()[found->second].value;
    std::vector<std::int64_t> sizes = value.sizes().vec();
    if (expert >= 0) sizes.erase(sizes.begin());
    const std::int64_t all_rows = sizes[0];
    std::int64_t row = 0;
    for (const auto& [name, rows] : parts) {
      sizes[0] = rows < 0 ? all_rows - row : rows;
      slices.push_back({name, found->second, expert, row, sizes});
      row += sizes[0];
    }
    ANTISD_CHECK_EQ(row, all_rows);
  };
  const bool post_norm = s.architecture == Architecture::kOlmo3;
  const std::int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  add("embedding", -1, {{"model.embed_tokens.weight", -1}});
  for (std::size_t i = 0; i < s.layers.size(); ++i) {
    const std::string ours = fmt::format("layers.{}.", i),
                      theirs = fmt::format("model.layers.{}.", i);
    const std::string attention = theirs + "self_attn.", mlp = theirs + "mlp.";
    add(ours + "first_norm", -1,
        {{theirs + (post_norm ? "post_attention_layernorm" : "input_layernorm") + ".weight", -1}});
    add(ours + "second_norm", -1,
        {{theirs + (post_norm ? "post_feedforward_layernorm" : "post_attention_layernorm") +
              ".weight",
          -1}});
    for (const auto& [suffix, kind] : {std::pair{"", ".weight"}, std::pair{"_bias", ".bias"}}) {
      add(ours + "qkv" + suffix, -1,
          {{attention + "q_proj" + kind, q},
           {attention + "k_proj" + kind, kv},
           {attention + "v_proj" + kind, kv}});
      add(ours + "output" + suffix, -1, {{attention + "o_proj" + kind, -1}});
      add(ours + "gate_up" + suffix, -1,
          {{mlp + "gate_proj" + kind, s.intermediate}, {mlp + "up_proj" + kind, -1}});
      add(ours + "down" + suffix, -1, {{mlp + "down_proj" + kind, -1}});
    }
    add(ours + "q_norm", -1, {{attention + "q_norm.weight", -1}});
    add(ours + "k_norm", -1, {{attention + "k_norm.weight", -1}});
    if (!s.layers[i].sparse) continue;
    add(ours + "router", -1, {{mlp + "gate.weight", -1}});
    for (std::int64_t e = 0; e < s.experts; ++e) {
      const std::string expert = fmt::format("{}experts.{}.", mlp, e);
      add(ours + "experts_gate_up", e,
          {{expert + "gate_proj.weight", s.expert_intermediate}, {expert + "up_proj.weight", -1}});
      add(ours + "experts_down", e, {{expert + "down_proj.weight", -1}});
    }
  }
  add("final_norm", -1, {{"model.norm.weight", -1}});
  add("head", -1, {{"lm_head.weight", -1}});
  return slices;
}

void load_weights(CausalLm& model, const std::filesystem::path& directory, LoadOptions options) {
  const SafetensorsDirectory files(directory);
  const std::vector<WeightSlice> slices = weight_slices(model);
  // A tied model's file may hold the matrix under either name, or under both.
  const bool tied = model.shape().tied_head;
  const SafetensorsTensor* head = files.find("lm_head.weight");
  const SafetensorsTensor* embedding = files.find("model.embed_tokens.weight");
  if (tied && embedding == nullptr) embedding = head;

  Mismatch mismatch;
  std::map<std::string, bool> known;
  std::vector<const SafetensorsTensor*> sources;
  for (const WeightSlice& slice : slices) {
    const SafetensorsTensor* source =
        slice.name == "model.embed_tokens.weight" ? embedding : files.find(slice.name);
    sources.push_back(source);
    known[slice.name] = true;
    if (source == nullptr) {
      mismatch.missing.push_back(slice.name);
    } else if (source->shape != slice.sizes) {
      mismatch.misshaped.push_back(fmt::format("{} is {}, not {}", slice.name,
                                               shape_text(source->shape), shape_text(slice.sizes)));
    }
    if (source != nullptr && !scalar_type(source->type)) {
      mismatch.mistyped.push_back(fmt::format("{} is {}", slice.name, name_of(source->type)));
    }
  }
  if (tied) known["lm_head.weight"] = true;
  const auto is_surplus = [&](const std::string& name) {
    return !known.contains(name) && !is_harmless_surplus(name);
  };
  for (const SafetensorsTensor* tensor : files.tensors()) {
    if (is_surplus(tensor->name)) mismatch.surplus.push_back(tensor->name);
  }
  for (const std::string& unplaced : files.surplus()) {  // "NAME in SHARD"
    if (is_surplus(unplaced.substr(0, unplaced.find(" in ")))) mismatch.surplus.push_back(unplaced);
  }
  mismatch.throw_if_any(directory);
  if (tied && head != nullptr && head != embedding && !same_values(*head, *embedding)) {
    throw InputError(
        "config.json ties the head to the embedding, but lm_head.weight differs from it",
        {.where = directory.string(), .remedy = "set tie_word_embeddings to false"});
  }

  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const at::Tensor source = tensor_of(*sources[i]);
    if (options.check_weights) check_finite(source, slices[i].name, directory);
    at::Tensor target = slices[i].of(model.parameters()[slices[i].parameter].value);
    target.copy_(source);
    if (model.dtype() == at::kHalf) check_range(target, slices[i].name, directory);
  }
}

CausalLm load_model(const std::filesystem::path& directory, at::Device device, at::ScalarType dtype,
                    LoadOptions options) {
  CausalLm model(read_model_shape(directory / "config.json"), device, dtype);
  load_weights(model, directory, options);
  return model;
}

void save_model(const CausalLm& model, const std::filesystem::path& origin,
                const std::filesystem::path& directory, at::ScalarType dtype) {
  std::filesystem::create_directories(directory);
  const std::vector<WeightSlice> slices = weight_slices(model);
  std::vector<TensorSpec> specs;
  for (const WeightSlice& slice : slices)
    specs.push_back({slice.name, tensor_type(dtype), slice.sizes});
  ShardedSafetensorsWriter writer(directory, specs, kShardBytes);
  for (const WeightSlice& slice : slices) {
    const at::Tensor part = slice.of(model.parameters()[slice.parameter].value.detach())
                                .to(dtype)
                                .contiguous()
                                .to(at::kCPU);
    writer.write(slice.name, {static_cast<const std::byte*>(part.const_data_ptr()), part.nbytes()});
  }
  writer.finish();
  for (const char* name : kCompanionFiles) {
    if (std::filesystem::exists(origin / name))
      write_file_atomically(directory / name, read_file(origin / name));
  }
  Json config = parse_json(read_file(origin / "config.json"), (origin / "config.json").string());
  const char* precision = dtype == at::kFloat  ? "float32"
                          : dtype == at::kHalf ? "float16"
                                               : "bfloat16";
  config.erase("torch_dtype");
  config["dtype"] = precision;
  write_file_atomically(directory / "config.json", config.dump(2) + "\n");
}

void initialise_randomly(CausalLm& model, std::uint64_t seed, double deviation) {
  const at::NoGradGuard no_grad;
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for (Parameter& parameter : model.parameters()) {
    const bool is_norm = parameter.name.ends_with("norm"),
               is_bias = parameter.name.ends_with("bias");
    if (is_norm || is_bias) {
      parameter.value.fill_(is_norm ? 1.0 : 0.0);
    } else {
      parameter.value.copy_(at::randn(parameter.value.sizes(), generator, at::kFloat) * deviation);
    }
  }
}

}  // namespace antisd
