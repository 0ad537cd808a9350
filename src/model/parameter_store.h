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
// into parts or summed as one tensor. Ranks may divide masters and moments: each then holds the
// part of every block that it updates. They may lie on the host (offload.h). The last norm is in
// the head's block: both are needed at the same time, after the last layer, also if the head is the
// embedding.
//
// A quantised parameter has codes and scales instead of a value; it is frozen.
//
// The backward pass creates gradients outside the blocks, one tensor per parameter: autograd takes
// over the tensor that a product has just created, without a copy.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/offload.h"
#include "model/parameter_spec.h"
#include "ops/adamw.h"

namespace antisd::inline model {

// Parts end between blocks of the update, so that a cut changes no bit.
inline constexpr std::int64_t kPieceElements = kUpdateBlock;

// What a quantised parameter takes of its block's codes and scales: pieces begin at multiples of
// 128 bytes.
struct QuantizedPiece {
  std::int64_t code_bytes = 0, scales = 0;
};
QuantizedPiece quantized_piece(const ParameterSpec& spec);

// One of `count` parts of a block's trainable elements, all of one size but for the end of the
// block. Sizes are multiples of `multiple` pieces.
struct BlockPart {
  std::int64_t index = 0, count = 1, multiple = 1;
};

struct Parameter {
  ParameterSpec spec;
  at::Tensor value;           // in the compute dtype; a leaf that may require gradients
  QuantizedWeight quantized;  // instead of a value
  at::Tensor gradient_sum;    // fp32, over micro-batches; undefined if none was taken
  // What follows is of the elements that are updated here: of all, with the value's sizes, or of
  // those in this rank's part of the block, [own_count].
  at::Tensor master;                       // fp32; undefined if the value is its own master
  at::Tensor first_moment, second_moment;  // fp32; undefined without an optimizer or if frozen
  std::int64_t own_begin = 0, own_count = 0;
  bool borrowed = false;  // the value is another store's

  const std::string& name() const { return spec.name; }
  const at::Tensor& exact() const { return master.defined() ? master : value; }

  std::size_t bytes() const {  // of its elements
    return quantized.defined() ? quantized.codes.nbytes() + quantized.scales.nbytes()
                               : value.nbytes();
  }
  // Sets all elements, or those of a slice, from values of any precision and device.
  void set(const at::Tensor& values);
  void set(const WeightSlice& slice, const at::Tensor& values);
};

struct ParameterBlock {
  std::string name;
  std::optional<std::size_t> layer = {};  // whose it is; none of the embedding and the head
  std::size_t first = 0, count = 0;       // its parameters, in the order of the store
  // [elements] each. Only trainable parameters have pieces of storage other than values; masters
  // and moments are those of this rank's part. Pieces of `gradient_sums` are set once their
  // parameter's gradient was taken.
  at::Tensor values, gradient_sums, masters, first_moments, second_moments;
  at::Tensor codes, scales;  // of quantised parameters, or undefined
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
  // Only of those parameters that are not frozen ones of `other`: these have their memory there.
  ParameterStore(std::vector<ParameterSpec> specs, const ParameterStore& other, at::Device device,
                 at::ScalarType dtype);
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
  // Zero moments, and masters for values below fp32, for the trainable elements of a part, on the
  // values' device or on the host. RunError if the host's memory cannot be pinned.
  void make_optimizer_state(BlockPart part = {}, Offload offload = Offload::kNone);

  const ParameterBlock& block_of(const Parameter& parameter) const;
  // Where a trainable parameter's elements begin in its block's trainable elements.
  std::int64_t place_in_block(const Parameter& parameter) const;

  // Gives the memory of a block's values back, and gives them other memory, [elements or more] of
  // the same kind. In between the parameters have their tensors, but no values.
  void free_values(const ParameterBlock& block) noexcept;
  void place_values(const ParameterBlock& block, at::Tensor memory);
  // How often values have got other memory: who keeps their addresses compares.
  std::int64_t moves() const { return moves_; }

  // Adds 16-bit gradients to their fp32 sums; fp32 gradients accumulate in place.
  void take_gradients();
  void take_gradient(Parameter& parameter);
  void drop_gradients();  // and their sums

  // Of a block, with the gaps.
  std::int64_t trainable_elements(const ParameterBlock& block) const;
  // The elements of a block's part, [begin, end) of its trainable ones.
  std::pair<std::int64_t, std::int64_t> range_of(const ParameterBlock& block, BlockPart part) const;

  // All tensors of the directory, in the order of the files.
  std::vector<StoredTensor> stored_tensors() const;
  std::vector<StoredTensor> stored_tensors(const ParameterBlock& block) const;

 private:
  void take_specs(std::vector<ParameterSpec> specs);
  void allocate_values(at::Device device, at::ScalarType dtype);

  std::vector<Parameter> parameters_;
  std::vector<ParameterBlock> blocks_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::int64_t moves_ = 0;
};

}  // namespace antisd::inline model
