#include "model/weights.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/check.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "model/adapter_files.h"
#include "model/architecture.h"
#include "model/file_tensors.h"
#include "model/not_finite.h"

namespace antisd::inline model {
namespace {

constexpr std::int64_t kShardBytes = 5'000'000'000;

bool same_values(const SafetensorsTensor& a, const SafetensorsTensor& b) {
  if (a.shape != b.shape || !scalar_type(a.type)) return false;
  if (a.type == b.type) return tensor_of(a).equal(tensor_of(b));
  return tensor_of(a).to(at::kFloat).equal(tensor_of(b).to(at::kFloat));
}

// Tensors of old files that are not needed.
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

// After a conversion to fp16, values beyond its range are infinite.
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

// Of a tensor that has been quantised.
void check_quantized(const QuantizedWeight& tensor, at::ScalarType dtype, const std::string& name,
                     const std::filesystem::path& directory) {
  check_finite(tensor.scales, name, directory);
  if (dtype != at::kHalf) return;
  const double codes = tensor.kind() == QuantizedKind::kInt8 ? 127 : 1;
  check_range((tensor.scales * codes).to(dtype), name, directory);
}

// Without those of adapters, which have files of their own.
std::vector<StoredTensor> base_tensors(std::vector<StoredTensor> tensors) {
  std::erase_if(tensors, [](const StoredTensor& t) { return t.parameter->spec.is_adapter(); });
  return tensors;
}

// Files of a model directory other than weights and config.
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

void load_weights(CausalLm& model, const std::filesystem::path& directory, LoadOptions options) {
  const SafetensorsDirectory files(directory);
  const std::vector<StoredTensor> tensors = base_tensors(model.parameters().stored_tensors());
  // A tied model's file may hold the matrix under either name, or under both.
  const bool tied = model.shape().tied_head;
  const ArchitectureSpec& names = *model.shape().architecture;
  const SafetensorsTensor* head = files.find(names.head_tensor);
  const SafetensorsTensor* embedding = files.find(names.embedding_tensor);
  if (tied && embedding == nullptr) embedding = head;

  Mismatch mismatch;
  std::map<std::string, bool> known;
  std::vector<const SafetensorsTensor*> sources;
  for (const StoredTensor& tensor : tensors) {
    const WeightSlice& slice = *tensor.slice;
    const SafetensorsTensor* source =
        slice.name == names.embedding_tensor ? embedding : files.find(slice.name);
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
  if (tied) known[names.head_tensor] = true;
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
        fmt::format("config.json ties the head to the embedding, but {} differs from it",
                    names.head_tensor),
        {.where = directory.string(), .remedy = "set tie_word_embeddings to false"});
  }

  const at::NoGradGuard no_grad;
  const auto load = [&](std::size_t i) {
    const auto& [parameter, slice] = tensors[i];
    const at::Tensor source = tensor_of(*sources[i]);
    if (options.check_weights) check_finite(source, slice->name, directory);
    Parameter& target = model.parameters().at(parameter->name());
    target.set(*slice, source);
    if (target.quantized.defined()) {
      check_quantized(slice->of(target.quantized), model.dtype(), slice->name, directory);
    } else if (model.dtype() == at::kHalf) {
      check_range(slice->of(target.value), slice->name, directory);
    }
  };
  std::size_t next = 0;  // tensors are in the order of the blocks
  for (const ParameterBlock& block : model.parameters().blocks()) {
    model.change_layer(block.layer, [&] {
      for (const std::size_t end =
               next + base_tensors(model.parameters().stored_tensors(block)).size();
           next < end; ++next)
        load(next);
    });
  }
}

CausalLm load_model(const std::filesystem::path& directory, at::Device device, at::ScalarType dtype,
                    LoadOptions options) {
  if (is_adapter_directory(directory)) {
    const AdapterConfig adapter = read_adapter_config(directory);
    const std::filesystem::path base = base_directory(directory, options.base);
    ModelShape shape = read_model_shape(base / "config.json");
    shape.lora = adapter.lora;
    shape.base = options.base_format;
    CausalLm model(std::move(shape), device, dtype);
    load_weights(model, base, options);
    load_adapter(model, adapter);
    return model;
  }
  ModelShape shape = read_model_shape(directory / "config.json");
  shape.base = options.base_format;
  CausalLm model(std::move(shape), device, dtype);
  load_weights(model, directory, options);
  return model;
}

void save_model(const CausalLm& model, const std::filesystem::path& origin,
                const std::filesystem::path& directory, at::ScalarType dtype) {
  ANTISD_CHECK(!model.shape().base);
  std::filesystem::create_directories(directory);
  const std::vector<StoredTensor> tensors = base_tensors(model.parameters().stored_tensors());
  std::vector<TensorSpec> specs;
  for (const StoredTensor& tensor : tensors)
    specs.push_back({tensor.slice->name, tensor_type(dtype), tensor.slice->sizes});
  ShardedSafetensorsWriter writer(directory, specs, kShardBytes);
  for (const ParameterBlock& block : model.parameters().blocks()) {
    const BlockInUse here(model, block);
    for (const auto& [parameter, slice] : base_tensors(model.parameters().stored_tensors(block))) {
      const at::Tensor part =
          slice->of(parameter->value.detach()).to(dtype).contiguous().to(at::kCPU);
      writer.write(slice->name,
                   {static_cast<const std::byte*>(part.const_data_ptr()), part.nbytes()});
    }
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
    if (parameter.spec.is_adapter()) continue;
    if (parameter.spec.kind != ParameterKind::kMatrix) {
      parameter.value.fill_(parameter.spec.kind == ParameterKind::kNorm ? 1.0 : 0.0);
    } else {
      parameter.set(at::randn(parameter.spec.sizes, generator, at::kFloat) * deviation);
    }
  }
}

}  // namespace antisd::inline model
