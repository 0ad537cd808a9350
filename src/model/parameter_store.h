// The owner of a model's parameters: values, gradient sums, masters and moments. Code that reads or
// changes them iterates over the store; the model borrows the values (layer.h).
//
//   ParameterStore store(parameter_specs(shape), at::kCUDA, at::kBFloat16);
//   store.make_optimizer_state();                         // called by AdamW
//   for (Parameter& parameter : store) print(parameter.name(), parameter.value.norm());
//   store.at("layers.0.qkv").value.fill_(0);
//
// Elements are stored in blocks: the embedding, each layer, the head. A block has one allocation
// per kind of storage (values, gradient sums, masters, each moment), and a parameter's tensors are
// pieces of it that start at multiples of kPieceElements; gaps are 0. So a block can be moved, cut
// into parts or summed as one tensor. The last norm is in the head's block: both are needed at the
// same time, after the last layer, also if the head is the embedding.
//
// The backward pass creates gradients outside the blocks, one tensor per parameter: autograd takes
// over the tensor that a product has just created, without a copy.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/parameter_spec.h"

namespace antisd::inline model {

inline constexpr std::int64_t kPieceElements = 128;

struct Parameter {
  ParameterSpec spec;
  at::Tensor value;         // in the compute dtype; a leaf that may require gradients
  at::Tensor gradient_sum;  // fp32, over micro-batches; undefined if none was taken
  at::Tensor master;        // fp32; undefined if the value is its own master
  at::Tensor first_moment, second_moment;  // fp32; undefined without an optimizer or if frozen

  const std::string& name() const { return spec.name; }
  const at::Tensor& exact() const { return master.defined() ? master : value; }
};

struct ParameterBlock {
  std::string name;
  std::size_t first = 0, count = 0;  // its parameters, in the order of the store
  // [elements] each. Only trainable parameters have pieces of storage other than values. Pieces of
  // `gradient_sums` are set once their parameter's gradient was taken.
  at::Tensor values, gradient_sums, masters, first_moments, second_moments;
};

// A tensor of the model's directory, and the parameter that it belongs to.
struct StoredTensor {
  const Parameter* parameter;
  const WeightSlice* slice;
};

class ParameterStore {
 public:
  // Allocates values without setting them. Specs of one block must be adjacent.
  ParameterStore(std::vector<ParameterSpec> specs, at::Device device, at::ScalarType dtype);
  ParameterStore(ParameterStore&&) = default;  // parameters keep their addresses
  ParameterStore& operator=(ParameterStore&&) = default;

  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }

  // An unknown name is a programming error.
  Parameter& at(std::string_view name);
  const Parameter& at(std::string_view name) const;

  const std::vector<ParameterBlock>& blocks() const { return blocks_; }
  std::span<Parameter> of(const ParameterBlock& block) {
    return std::span(parameters_).subspan(block.first, block.count);
  }
  std::span<const Parameter> of(const ParameterBlock& block) const {
    return std::span(parameters_).subspan(block.first, block.count);
  }

  // Lets trainable parameters collect gradients from now on.
  void require_gradients();
  // Zero moments, and masters for values below fp32, for trainable parameters.
  void make_optimizer_state();

  // Adds 16-bit gradients to their fp32 sums; fp32 gradients accumulate in place.
  void take_gradients();
  void drop_gradients();  // and their sums

  // All tensors of the directory, in the order of the files.
  std::vector<StoredTensor> stored_tensors() const;

 private:
  std::vector<Parameter> parameters_;
  std::vector<ParameterBlock> blocks_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace antisd::inline model
