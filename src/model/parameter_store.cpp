#include "model/parameter_store.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>

#include "core/check.h"
#include "ops/host_memory.h"

namespace antisd::inline model {
namespace {

std::int64_t piece_elements(const Parameter& parameter) {
  return (parameter.spec.count() + kPieceElements - 1) / kPieceElements * kPieceElements;
}

enum class Pieces { kOfValues, kOfTrainable };

bool has_piece(const Parameter& parameter, Pieces which) {
  return which == Pieces::kOfValues ? !parameter.spec.quantized && !parameter.borrowed
                                    : parameter.spec.trainable;
}

// The offset of a parameter's elements in its block's allocation.
std::int64_t piece_begin(std::span<const Parameter> block, const Parameter& parameter,
                         Pieces which) {
  std::int64_t begin = 0;
  for (const Parameter& earlier : block) {
    if (&earlier == &parameter) return begin;
    if (has_piece(earlier, which)) begin += piece_elements(earlier);
  }
  fail_check(__FILE__, __LINE__, "a parameter of another block");
}

// A tensor over the parameter's piece of `whole`. It is not an autograd view, so it is a leaf, and
// changing one parameter does not count as a change of its neighbours.
at::Tensor piece_of(const at::Tensor& whole, std::span<const Parameter> block,
                    const Parameter& parameter, Pieces which) {
  at::Tensor piece = at::empty({0}, whole.options());
  return piece.set_(whole.storage(), piece_begin(block, parameter, which), parameter.spec.sizes);
}

// One allocation for the parameters of a block, with zeros between them. Undefined if none has a
// piece.
at::Tensor allocate(std::span<const Parameter> block, Pieces which, at::TensorOptions options) {
  std::int64_t elements = 0;
  for (const Parameter& parameter : block)
    if (has_piece(parameter, which)) elements += piece_elements(parameter);
  if (elements == 0) return {};
  at::Tensor whole = at::empty({elements}, options);
  for (const Parameter& parameter : block) {
    const std::int64_t gap = piece_elements(parameter) - parameter.spec.count();
    if (gap == 0 || !has_piece(parameter, which)) continue;
    whole.narrow(0, piece_begin(block, parameter, which) + parameter.spec.count(), gap).zero_();
  }
  return whole;
}

// Codes and scales, each in one allocation.
void allocate_quantized(ParameterBlock& block, std::span<Parameter> parameters, at::Device device) {
  const auto piece = [](const at::Tensor& whole, std::int64_t begin, const ParameterSpec& spec,
                        std::int64_t width) {
    std::vector<std::int64_t> sizes = spec.sizes;
    sizes.back() = width;
    return at::empty({0}, whole.options()).set_(whole.storage(), begin, sizes);
  };
  std::optional<QuantizedKind> kind;
  std::int64_t codes = 0, scales = 0;
  struct Place {
    Parameter& parameter;
    std::int64_t codes, scales;
  };
  std::vector<Place> places;
  for (Parameter& parameter : parameters) {
    const ParameterSpec& spec = parameter.spec;
    if (!spec.quantized || parameter.borrowed) continue;
    ANTISD_CHECK(!spec.trainable && (!kind || kind == spec.quantized));
    kind = spec.quantized;
    places.push_back({parameter, codes, scales});
    codes += quantized_piece(spec).code_bytes;
    scales += quantized_piece(spec).scales;
  }
  if (!kind) return;
  const auto options = at::TensorOptions().device(device);
  block.codes = at::empty({codes}, options.dtype(code_type(*kind)));
  block.scales = at::empty({scales}, options.dtype(at::kFloat));
  for (const auto& [parameter, codes_begin, scales_begin] : places) {
    const ParameterSpec& spec = parameter.spec;
    const QuantizedRow row = quantized_row(*kind, spec.sizes.back());
    parameter.quantized = {piece(block.codes, codes_begin, spec, row.bytes),
                           piece(block.scales, scales_begin, spec, row.scales), spec.sizes.back()};
  }
}

// "layers.12" -> 12.
std::optional<std::size_t> layer_of(const std::string& block) {
  constexpr std::string_view kLayers = "layers.";
  if (!block.starts_with(kLayers)) return std::nullopt;
  return std::stoul(block.substr(kLayers.size()));
}

}  // namespace

at::Tensor WeightSlice::of(const at::Tensor& whole) const {
  const at::Tensor part = expert < 0 ? whole : whole.select(0, expert);
  return part.narrow(0, first_row, sizes[0]);
}

std::int64_t ParameterSpec::count() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

QuantizedPiece quantized_piece(const ParameterSpec& spec) {
  const auto aligned = [](std::int64_t count, std::int64_t unit) {
    return (count + unit - 1) / unit * unit;
  };
  const std::int64_t columns = spec.sizes.back(), rows = spec.count() / columns;
  const QuantizedRow row = quantized_row(spec.quantized.value(), columns);
  return {aligned(rows * row.bytes, 128), aligned(rows * row.scales, 32)};
}

void Parameter::set(const at::Tensor& values) {
  if (quantized.defined()) {
    quantize_into(values.to(quantized.codes.device()), quantized);
  } else {
    value.copy_(values);
  }
}

void Parameter::set(const WeightSlice& slice, const at::Tensor& values) {
  if (quantized.defined()) {
    quantize_into(values.to(quantized.codes.device()), slice.of(quantized));
  } else {
    slice.of(value).copy_(values);
  }
}

ParameterStore::ParameterStore(std::vector<ParameterSpec> specs, at::Device device,
                               at::ScalarType dtype) {
  take_specs(std::move(specs));
  allocate_values(device, dtype);
}

ParameterStore::ParameterStore(std::vector<ParameterSpec> specs, const ParameterStore& other,
                               at::Device device, at::ScalarType dtype) {
  take_specs(std::move(specs));
  for (Parameter& parameter : parameters_) {
    const auto found = other.index_.find(parameter.name());
    if (found == other.index_.end()) continue;
    const Parameter& lender = other.parameters_[found->second];
    if (lender.spec.trainable) continue;
    parameter.value = lender.value;
    parameter.quantized = lender.quantized;
    parameter.borrowed = true;
  }
  allocate_values(device, dtype);
}

void ParameterStore::take_specs(std::vector<ParameterSpec> specs) {
  for (ParameterSpec& spec : specs) {
    if (blocks_.empty() || blocks_.back().name != spec.block)
      blocks_.push_back(
          {.name = spec.block, .layer = layer_of(spec.block), .first = parameters_.size()});
    ++blocks_.back().count;
    ANTISD_CHECK(index_.emplace(spec.name, parameters_.size()).second);
    parameters_.push_back({.spec = std::move(spec)});
  }
}

void ParameterStore::allocate_values(at::Device device, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  for (ParameterBlock& block : blocks_) {
    const std::span<Parameter> parameters = of(block);
    block.values =
        allocate(parameters, Pieces::kOfValues, at::TensorOptions().device(device).dtype(dtype));
    for (Parameter& parameter : parameters)
      if (has_piece(parameter, Pieces::kOfValues))
        parameter.value = piece_of(block.values, parameters, parameter, Pieces::kOfValues);
    allocate_quantized(block, parameters, device);
  }
}

Parameter& ParameterStore::at(std::string_view name) {
  return const_cast<Parameter&>(std::as_const(*this).at(name));
}

const Parameter& ParameterStore::at(std::string_view name) const {
  const auto found = index_.find(name);
  ANTISD_CHECK(found != index_.end());
  return parameters_[found->second];
}

void ParameterStore::require_gradients() {
  for (Parameter& parameter : parameters_)
    if (parameter.value.defined()) parameter.value.requires_grad_(parameter.spec.trainable);
}

const ParameterBlock& ParameterStore::block_of(const Parameter& parameter) const {
  const auto index = static_cast<std::size_t>(&parameter - parameters_.data());
  ANTISD_CHECK_LT(index, parameters_.size());
  return *std::ranges::find_if(
      blocks_, [&](const ParameterBlock& block) { return index < block.first + block.count; });
}

std::int64_t ParameterStore::place_in_block(const Parameter& parameter) const {
  return piece_begin(of(block_of(parameter)), parameter, Pieces::kOfTrainable);
}

std::int64_t ParameterStore::trainable_elements(const ParameterBlock& block) const {
  std::int64_t elements = 0;
  for (const Parameter& parameter : of(block))
    if (parameter.spec.trainable) elements += piece_elements(parameter);
  return elements;
}

std::pair<std::int64_t, std::int64_t> ParameterStore::range_of(const ParameterBlock& block,
                                                               BlockPart part) const {
  const std::int64_t elements = trainable_elements(block);
  const std::int64_t unit = part.multiple * kPieceElements, units = part.count * unit;
  const std::int64_t size = (elements + units - 1) / units * unit;
  return {std::min(part.index * size, elements), std::min((part.index + 1) * size, elements)};
}

void ParameterStore::make_optimizer_state(BlockPart part, Offload offload) {
  const at::NoGradGuard no_grad;
  for (ParameterBlock& block : blocks_) {
    const std::span<Parameter> parameters = of(block);
    const auto [begin, end] = range_of(block, part);
    if (begin == end) continue;
    const auto fp32 = block.values.options().dtype(at::kFloat);
    const bool has_masters = block.values.scalar_type() != at::kFloat;
    const auto zeros = [&](bool on_host) {
      return on_host ? host_zeros(end - begin, block.values.device())
                     : at::zeros({end - begin}, fp32);
    };
    if (has_masters) block.masters = zeros(offload == Offload::kAll);
    block.first_moments = zeros(offload != Offload::kNone);
    block.second_moments = zeros(offload != Offload::kNone);
    for (Parameter& parameter : parameters) {
      if (!parameter.spec.trainable) continue;
      const std::int64_t place = piece_begin(parameters, parameter, Pieces::kOfTrainable);
      const std::int64_t count = parameter.spec.count();
      parameter.own_begin = std::clamp<std::int64_t>(begin - place, 0, count);
      parameter.own_count = std::clamp<std::int64_t>(end - place, 0, count) - parameter.own_begin;
      if (parameter.own_count == 0) continue;
      const auto piece = [&](const at::Tensor& whole) {
        return at::empty({0}, whole.options())
            .set_(whole.storage(), place + parameter.own_begin - begin,
                  parameter.own_count == count ? parameter.spec.sizes
                                               : std::vector{parameter.own_count});
      };
      if (has_masters) {
        parameter.master = piece(block.masters);
        if (block.values.storage().nbytes() > 0) {  // otherwise ranks hold them in parts
          parameter.master.view({-1}).copy_(parameter.value.detach().view({-1}).narrow(
              0, parameter.own_begin, parameter.own_count));
        }
      }
      parameter.first_moment = piece(block.first_moments);
      parameter.second_moment = piece(block.second_moments);
    }
  }
}

void ParameterStore::free_values(const ParameterBlock& block) noexcept {
  c10::StorageImpl& storage = *block.values.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap({nullptr, block.values.device()});
  storage.set_nbytes(std::size_t{0});
}

void ParameterStore::place_values(const ParameterBlock& block, at::Tensor memory) {
  ANTISD_CHECK(memory.numel() >= block.values.numel() && memory.dtype() == block.values.dtype() &&
               memory.device() == block.values.device());
  const std::size_t bytes = memory.nbytes();
  c10::StorageImpl& storage = *block.values.storage().unsafeGetStorageImpl();
  c10::StorageImpl& source = *memory.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(std::move(source.mutable_data_ptr()));
  storage.set_nbytes(bytes);
  ++moves_;
}

void ParameterStore::take_gradients() {
  for (Parameter& parameter : parameters_)
    take_gradient(parameter);
}

void ParameterStore::take_gradient(Parameter& parameter) {
  if (!parameter.spec.trainable) return;
  at::Tensor& gradient = parameter.value.mutable_grad();
  if (!gradient.defined() || gradient.scalar_type() == at::kFloat) return;
  const at::NoGradGuard no_grad;
  if (parameter.gradient_sum.defined()) {
    parameter.gradient_sum.add_(gradient);
  } else {
    ParameterBlock& block = const_cast<ParameterBlock&>(block_of(parameter));
    const std::span<Parameter> parameters = of(block);
    if (!block.gradient_sums.defined()) {
      block.gradient_sums =
          allocate(parameters, Pieces::kOfTrainable, block.values.options().dtype(at::kFloat));
    }
    parameter.gradient_sum =
        piece_of(block.gradient_sums, parameters, parameter, Pieces::kOfTrainable).copy_(gradient);
  }
  gradient.reset();
}

void ParameterStore::drop_gradients() {
  for (ParameterBlock& block : blocks_)
    block.gradient_sums.reset();
  for (Parameter& parameter : parameters_) {
    if (!parameter.value.defined()) continue;
    parameter.value.mutable_grad().reset();
    parameter.gradient_sum.reset();
  }
}

std::vector<StoredTensor> ParameterStore::stored_tensors() const {
  std::vector<StoredTensor> tensors;
  for (const ParameterBlock& block : blocks_) {
    const std::vector<StoredTensor> own = stored_tensors(block);
    tensors.insert(tensors.end(), own.begin(), own.end());
  }
  return tensors;
}

std::vector<StoredTensor> ParameterStore::stored_tensors(const ParameterBlock& block) const {
  std::vector<StoredTensor> tensors;
  for (const Parameter& parameter : of(block)) {
    for (const WeightSlice& slice : parameter.spec.slices)
      tensors.push_back({&parameter, &slice});
  }
  const auto place = [](const StoredTensor& tensor) {
    return std::pair(tensor.slice->order, tensor.slice->expert);
  };
  std::ranges::stable_sort(tensors,
                           [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return tensors;
}

}  // namespace antisd::inline model
