#include "run/checkpoint/optimizer_file.h"

#include <charconv>
#include <cstring>

#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "model/weights.h"

namespace antisd::inline run {
namespace {

constexpr const char* kFirst = "exp_avg.";
constexpr const char* kSecond = "exp_avg_sq.";
constexpr const char* kMaster = "master.";
constexpr const char* kSteps = "adamw_steps";

// Calls visit(name, slice, tensor) for every part of the state with a tensor in the file: all parts
// of one tensor before the next.
template <typename Visit>
void for_each_part(const ParameterStore& parameters, Visit visit) {
  for (const auto& [parameter, slice] : parameters.stored_tensors()) {
    const auto visit_if = [&](const char* kind, const at::Tensor& tensor) {
      if (tensor.defined()) visit(kind + slice->name, *slice, tensor);
    };
    visit_if(kFirst, parameter->first_moment);
    visit_if(kSecond, parameter->second_moment);
    visit_if(kMaster, parameter->master);
  }
}

// InputError if the tensor in the file is not fp32 or does not have the slice's sizes.
void copy_into(const WeightSlice& slice, const at::Tensor& whole, const SafetensorsTensor* source,
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

void save_optimizer(const ParameterStore& parameters, std::int64_t steps,
                    const std::filesystem::path& file) {
  std::vector<TensorSpec> specs;
  for_each_part(parameters,
                [&](const std::string& name, const WeightSlice& slice, const at::Tensor&) {
                  specs.push_back({name, TensorType::kF32, slice.sizes});
                });
  SafetensorsWriter writer(file, specs, {{"format", "pt"}, {kSteps, std::to_string(steps)}});
  for_each_part(
      parameters, [&](const std::string& name, const WeightSlice& slice, const at::Tensor& whole) {
        const at::Tensor part = slice.of(whole).contiguous().to(at::kCPU);
        writer.write(name, {static_cast<const std::byte*>(part.const_data_ptr()), part.nbytes()});
      });
  writer.finish();
}

void load_optimizer(CausalLm& model, AdamW& optimizer, const std::filesystem::path& file,
                    const std::filesystem::path& model_directory) {
  const at::NoGradGuard no_grad;
  const SafetensorsFile source(file);
  const std::int64_t steps = steps_of(source);
  load_weights(model, model_directory);
  const SafetensorsDirectory weights(model_directory);
  for (const auto& [parameter, slice] : model.parameters().stored_tensors()) {
    if (!parameter->spec.trainable) continue;
    const std::string first = kFirst + slice->name, second = kSecond + slice->name,
                      master = kMaster + slice->name;
    copy_into(*slice, parameter->first_moment, source.find(first), first, file);
    copy_into(*slice, parameter->second_moment, source.find(second), second, file);
    if (const SafetensorsTensor* saved = source.find(master); saved != nullptr) {
      copy_into(*slice, parameter->exact(), saved, master, file);
    } else if (parameter->master.defined()) {
      copy_into(*slice, parameter->master, weights.find(slice->name), slice->name, model_directory);
    }
  }
  optimizer.restore(steps);
}

}  // namespace antisd::inline run
