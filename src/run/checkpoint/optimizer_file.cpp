#include "run/checkpoint/optimizer_file.h"

#include <array>
#include <charconv>
#include <cstring>
#include <exception>
#include <optional>

#include <ATen/core/grad_mode.h>

#include "core/check.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "model/adapter_files.h"
#include "model/weights.h"

namespace antisd::inline run {
namespace {

constexpr const char* kStem = "optimizer";
constexpr const char* kIndexName = "optimizer.safetensors.index.json";
constexpr const char* kFirst = "exp_avg.";
constexpr const char* kSecond = "exp_avg_sq.";
constexpr const char* kMaster = "master.";
constexpr const char* kSteps = "adamw_steps";

struct Kind {
  const char* prefix;
  at::Tensor ParameterBlock::*tensor;
};
constexpr std::array kKinds = {Kind{kFirst, &ParameterBlock::first_moments},
                               Kind{kSecond, &ParameterBlock::second_moments},
                               Kind{kMaster, &ParameterBlock::masters}};

// The tensors of the file, in their order: by block, by tensor of the model, by kind.
std::vector<TensorSpec> file_tensors(const ParameterStore& parameters) {
  std::vector<TensorSpec> specs;
  for (const auto& [parameter, slice] : parameters.stored_tensors()) {
    if (!parameter->spec.trainable) continue;
    for (const Kind& kind : kKinds) {
      const bool has_master = parameter->value.scalar_type() != at::kFloat;
      if (kind.tensor == &ParameterBlock::masters && !has_master) continue;
      specs.push_back({kind.prefix + slice->name, TensorType::kF32, slice->sizes});
    }
  }
  return specs;
}

// The files of this rank, filled in the order of the tensors.
class OwnFiles {
 public:
  OwnFiles(std::filesystem::path folder, std::vector<SafetensorsShard> shards,
           const OptimizerSaving& saving)
      : folder_(std::move(folder)), shards_(std::move(shards)), saving_(saving) {}

  // The next tensor of the layout; another rank's is passed over.
  void write(const std::string& name, std::span<const std::byte> bytes) {
    while (next_ == shards_[shard_].specs.size()) {
      ++shard_;
      next_ = 0;
    }
    ANTISD_CHECK_EQ(shards_[shard_].specs[next_].name, name);
    if (is_own(shard_)) {
      if (next_ == 0) open();
      writer_->write(name, bytes);
      if (next_ + 1 == shards_[shard_].specs.size()) writer_->finish();
    }
    ++next_;
  }

 private:
  bool is_own(std::size_t shard) const {
    return static_cast<int>(shard) % saving_.ranks == saving_.rank;
  }
  void open() {
    writer_.emplace(folder_ / shards_[shard_].file, shards_[shard_].specs,
                    SafetensorsMetadata{{"format", "pt"}, {kSteps, std::to_string(saving_.steps)}});
  }

  std::filesystem::path folder_;
  std::vector<SafetensorsShard> shards_;
  OptimizerSaving saving_;
  std::size_t shard_ = 0, next_ = 0;  // of its tensors
  std::optional<SafetensorsWriter> writer_;
};

// Writes all tensors of a block. `whole`: by kind, all trainable elements; undefined ones are left
// out.
void write_block(const ParameterStore& parameters, const ParameterBlock& block,
                 const std::vector<at::Tensor>& whole, OwnFiles& files) {
  for (const auto& [parameter, slice] : parameters.stored_tensors(block)) {
    if (!parameter->spec.trainable) continue;
    for (std::size_t k = 0; k < kKinds.size(); ++k) {
      if (!whole[k].defined()) continue;
      const at::Tensor own =
          whole[k]
              .narrow(0, parameters.place_in_block(*parameter), parameter->spec.count())
              .view(parameter->spec.sizes);
      const at::Tensor part = slice->of(own).contiguous().to(at::kCPU);
      files.write(kKinds[k].prefix + slice->name,
                  {static_cast<const std::byte*>(part.const_data_ptr()), part.nbytes()});
    }
  }
}

std::vector<at::Tensor> whole_state(const AdamW& optimizer, const ParameterBlock& block) {
  std::vector<at::Tensor> whole;
  for (const Kind& kind : kKinds)
    whole.push_back(optimizer.whole(block, kind.tensor));
  return whole;
}

// InputError if the tensor in the file is not fp32 or does not have the slice's sizes.
void check_tensor(const WeightSlice& slice, const SafetensorsTensor* source,
                  const std::string& name, const std::filesystem::path& file) {
  const ErrorContext context{.where = file.string(),
                             .remedy = "resume with the model and optimizer that saved it"};
  if (source == nullptr) throw InputError("the tensor " + name + " is missing", context);
  if (source->shape != slice.sizes || source->type != TensorType::kF32) {
    throw InputError(
        fmt::format("the tensor {} is {} [{}] instead of F32 [{}]", name, name_of(source->type),
                    fmt::join(source->shape, ", "), fmt::join(slice.sizes, ", ")),
        context);
  }
}

void copy_into(const WeightSlice& slice, const at::Tensor& whole, const SafetensorsTensor* source,
               const std::string& name, const std::filesystem::path& file) {
  check_tensor(slice, source, name, file);
  at::Tensor values = at::empty(slice.sizes, at::kFloat);
  std::memcpy(values.mutable_data_ptr(), source->data.data(), source->data.size());
  slice.of(whole).copy_(values);
}

std::int64_t steps_of(const SafetensorsFile& file) {
  const auto found = file.metadata().find(kSteps);
  std::int64_t steps = -1;
  if (found != file.metadata().end()) {
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), steps);
  }
  if (steps >= 0) return steps;
  throw InputError(fmt::format("its metadata has no count of steps ({})", kSteps),
                   {.where = file.path().string(), .remedy = "use another checkpoint"});
}

}  // namespace

void save_optimizer(const ParameterStore& parameters, const AdamW& optimizer,
                    const std::filesystem::path& folder, const OptimizerSaving& saving) {
  const std::vector<SafetensorsShard> shards =
      cut_shards(kStem, file_tensors(parameters), saving.shard_bytes);
  OwnFiles files(folder, shards, saving);
  std::exception_ptr failure;
  // Also after a failure: all ranks go through all blocks.
  for (const ParameterBlock& block : parameters.blocks()) {
    const std::vector<at::Tensor> whole = whole_state(optimizer, block);
    try {
      if (!failure) write_block(parameters, block, whole, files);
    } catch (const Error&) {
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  if (saving.rank == 0 && shards.size() > 1)
    write_file_atomically(folder / kIndexName, shard_index(shards));
}

void load_optimizer(CausalLm& model, AdamW& optimizer, const std::filesystem::path& folder,
                    const std::filesystem::path& model_directory) {
  const at::NoGradGuard no_grad;
  const std::filesystem::path index = folder / kIndexName;
  const std::filesystem::path file =
      std::filesystem::exists(index) ? index : folder / fmt::format("{}.safetensors", kStem);
  const SafetensorsDirectory source(file);
  const std::int64_t steps = steps_of(source.files().front());
  const bool adapted = model.shape().lora.has_value();
  if (adapted) {
    load_adapter(model, read_adapter_config(model_directory));
  } else {
    load_weights(model, model_directory);
  }
  const SafetensorsDirectory weights(adapted ? adapter_weights_file(model_directory)
                                             : model_directory);
  for (Parameter& parameter : model.parameters()) {
    if (!parameter.spec.trainable) continue;
    const at::Tensor whole = at::empty(parameter.spec.sizes, at::kFloat);
    const auto load = [&](const char* prefix, const at::Tensor& own) {
      for (const WeightSlice& slice : parameter.spec.slices) {
        const std::string name = prefix + slice.name;
        if (own.defined())
          copy_into(slice, whole, source.find(name), name, file);
        else  // another rank's: not read, which matters where there are many
          check_tensor(slice, source.find(name), name, file);
      }
      if (!own.defined()) return;
      own.view({-1}).copy_(whole.view({-1}).narrow(0, parameter.own_begin, parameter.own_count));
    };
    load(kFirst, parameter.first_moment);
    load(kSecond, parameter.second_moment);
    const bool has_masters = source.find(kMaster + parameter.spec.slices.front().name) != nullptr;
    if (parameter.value.scalar_type() == at::kFloat) {
      if (!has_masters) continue;  // the weights are exact
      model.change_layer(model.parameters().block_of(parameter).layer, [&] {
        for (const WeightSlice& slice : parameter.spec.slices)
          copy_into(slice, parameter.value, source.find(kMaster + slice.name), kMaster + slice.name,
                    file);
      });
    } else if (has_masters) {
      load(kMaster, parameter.master);
    } else {
      for (const WeightSlice& slice : parameter.spec.slices)
        copy_into(slice, whole, weights.find(slice.name), slice.name, model_directory);
      if (parameter.master.defined()) {
        parameter.master.view({-1}).copy_(
            whole.view({-1}).narrow(0, parameter.own_begin, parameter.own_count));
      }
    }
  }
  optimizer.restore(steps);
}

}  // namespace antisd::inline run
