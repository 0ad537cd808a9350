#include "trainer/holdings.h"

#include <algorithm>
#include <string>

#include "core/check.h"
#include "model/architecture.h"
#include "model/parameter_store.h"

namespace antisd::inline trainer {

Holdings::Holdings(const ModelShape& shape, const RankDivision& ranks) : ranks_(ranks) {
  ANTISD_CHECK(ranks.members > 0 && ranks.size > 0 && ranks.size % ranks.members == 0);
  std::string name;
  for (const ParameterSpec& spec : parameter_specs(shape)) {
    if (blocks_.empty() || spec.block != name)
      blocks_.push_back({.is_layer = spec.block.starts_with("layers.")});
    name = spec.block;
    if (spec.quantized) {
      const auto [code_bytes, scales] = quantized_piece(spec);
      quantized_bytes_ += static_cast<double>(code_bytes + 4 * scales);
      largest_quantized_ = std::max(largest_quantized_, static_cast<double>(spec.count()));
      continue;
    }
    const std::int64_t elements =
        (spec.count() + kPieceElements - 1) / kPieceElements * kPieceElements;
    Block& block = blocks_.back();
    block.all += elements;
    if (!spec.trainable) continue;
    block.trainable += elements;
    block.gradients += spec.count();
  }
}

template <typename Count>
double Holdings::sum(Count count) const {
  double elements = 0;
  for (const Block& block : blocks_)
    elements += static_cast<double>(count(block));
  return elements;
}

double Holdings::all() const {
  return sum([](const Block& b) { return b.all; });
}

double Holdings::trainable() const {
  return sum([](const Block& b) { return b.trainable; });
}

double Holdings::gradients() const {
  return sum([](const Block& b) { return b.gradients; });
}

double Holdings::of_layers() const {
  return sum([](const Block& b) { return b.is_layer ? b.all : 0; });
}

double Holdings::trainable_beside_layers() const {
  return sum([](const Block& b) { return b.is_layer ? 0 : b.gradients; });
}

double Holdings::largest_layer() const {
  std::int64_t largest = 0;
  for (const Block& block : blocks_)
    if (block.is_layer) largest = std::max(largest, block.all);
  return static_cast<double>(largest);
}

double Holdings::most_gradients() const {
  std::int64_t most = 0;
  for (const Block& block : blocks_)
    if (block.is_layer) most = std::max(most, block.trainable);
  return static_cast<double>(most);
}

double Holdings::own_part() const {
  return sum([&](const Block& b) { return part(b.trainable); });
}

double Holdings::largest_own_part() const {
  std::int64_t largest = 0;
  for (const Block& block : blocks_)
    largest = std::max(largest, part(block.trainable));
  return static_cast<double>(largest);
}

double Holdings::own_part_of_layers() const {
  const int teams = ranks_.size / ranks_.members;
  return sum([&](const Block& b) { return b.is_layer ? chunk(b.all) * teams : 0; });
}

double Holdings::largest_whole_layer() const {
  return static_cast<double>(chunk(static_cast<std::int64_t>(largest_layer())) * ranks_.size);
}

double Holdings::own_chunk() const {
  return sum([&](const Block& b) { return chunk(b.trainable); });
}

double Holdings::sent() const {
  return own_chunk() * ranks_.size;
}

double Holdings::sent_of_layers() const {
  return sum([&](const Block& b) { return b.is_layer ? chunk(b.trainable) * ranks_.size : 0; });
}

std::int64_t Holdings::chunk(std::int64_t elements) const {
  const std::int64_t unit = ranks_.size * kPieceElements;
  return (elements + unit - 1) / unit * kPieceElements;
}

std::int64_t Holdings::part(std::int64_t elements) const {
  return std::min(elements, chunk(elements) * (ranks_.size / ranks_.members));
}

}  // namespace antisd::inline trainer
