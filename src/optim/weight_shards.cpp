#include "optim/weight_shards.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "core/check.h"

namespace antisd::inline optim {

WeightShards::WeightShards(ParameterStore& parameters, Teams& teams)
    : parameters_(parameters), teams_(teams) {
  for (const ParameterBlock& block : parameters_.blocks()) {
    if (!block.layer) continue;
    ANTISD_CHECK_EQ(*block.layer, layers_.size());
    const bool all_train = std::ranges::all_of(std::as_const(parameters_).of(block),
                                               [](const Parameter& p) { return p.spec.trainable; });
    layers_.push_back({.block = all_train ? &block : nullptr, .part = {}, .arriving = {}});
  }
}

bool WeightShards::divides(const ParameterBlock& block) const {
  return block.layer && layers_[*block.layer].block != nullptr;
}

const WeightShards::Layer& WeightShards::layer(const ParameterBlock& block) const {
  ANTISD_CHECK(divided_ && divides(block));
  return layers_[*block.layer];
}

std::int64_t WeightShards::part_elements(const ParameterBlock& block) const {
  return teams_.chunk_elements(parameters_.trainable_elements(block)) * teams_.replicas().size();
}

void WeightShards::divide() {
  if (divided_) return;
  const at::NoGradGuard no_grad;
  for (Layer& layer : layers_) {
    if (!layer.block) continue;
    const auto [begin, end] = parameters_.range_of(*layer.block, teams_.part());
    layer.part = at::zeros({part_elements(*layer.block)}, layer.block->values.options());
    layer.part.narrow(0, 0, end - begin).copy_(layer.block->values.narrow(0, begin, end - begin));
    parameters_.free_values(*layer.block);
  }
  divided_ = true;
}

void WeightShards::gather() {
  if (!divided_) return;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    start(layers_[i]);
    if (i + 1 < layers_.size()) start(layers_[i + 1]);
    finish(layers_[i]);
    layers_[i].part.reset();
  }
  divided_ = false;
}

// Nothing where it is under way already, or there.
void WeightShards::start(Layer& layer) {
  if (!layer.block || layer.transfer || layer.uses > 0) return;
  layer.arriving =
      at::empty({layer.part.numel() * teams_.team().size()}, layer.block->values.options());
  layer.transfer = teams_.team().collect_parts(
      {.own = layer.part.const_data_ptr(),
       .received = layer.arriving.mutable_data_ptr(),
       .part_bytes = static_cast<std::int64_t>(layer.part.nbytes()),
       .kind = layer.part.is_cpu() ? MemoryKind::kHost : MemoryKind::kGpu});
}

void WeightShards::finish(Layer& layer) {
  if (!layer.block) return;
  std::exchange(layer.transfer, {})->wait();
  parameters_.place_values(*layer.block, std::exchange(layer.arriving, {}));
}

void WeightShards::fetch(std::size_t number, Direction direction) {
  if (!divided_) return;  // several threads may score at once
  Layer& layer = layers_[number];
  if (layer.uses > 0) {
    ++layer.uses;
    return;
  }
  const bool up = direction == Direction::kUp;
  if (open_ && up && number == 0) any_works(true);
  if (!up && on_layer_) on_layer_(number);
  start(layer);
  if (up && number + 1 < layers_.size()) start(layers_[number + 1]);
  if (!up && number > 0) start(layers_[number - 1]);
  finish(layer);
  ++layer.uses;
  ++fetched_;
}

void WeightShards::drop(std::size_t number) noexcept {
  if (!divided_) return;
  Layer& layer = layers_[number];
  if (--layer.uses > 0 || !layer.block) return;
  parameters_.free_values(*layer.block);
}

bool WeightShards::any_works(bool own) {
  const std::vector<std::string> all = teams_.team().gather(own ? "1" : "0");
  return std::ranges::find(all, "1") != all.end();
}

// The rest of a pass upwards, without computing.
void WeightShards::accompany() {
  do {
    const LayerInUse here(this, fetched_ % layers_.size(), Direction::kUp);
  } while (fetched_ % layers_.size() != 0);
}

void WeightShards::make_passes(std::optional<int> passes, const std::function<void()>& work) {
  if (!divided_) return work();
  fetched_ = 0;
  open_ = !passes;
  std::exception_ptr problem;
  try {
    work();
  } catch (const RankLost&) {
    throw;
  } catch (...) {
    problem = std::current_exception();
  }
  if (fetched_ % layers_.size() != 0) accompany();  // of a pass that has failed
  if (passes) {
    while (fetched_ < static_cast<std::size_t>(*passes) * layers_.size())
      accompany();
  } else {
    open_ = false;
    while (any_works(false))
      accompany();
  }
  if (problem) std::rethrow_exception(problem);
}

void WeightShards::change(std::size_t number, const std::function<void()>& change) {
  if (!divided_ || !layers_[number].block) return change();
  const at::NoGradGuard no_grad;
  Layer& layer = layers_[number];
  const ParameterBlock& block = *layer.block;
  const auto [begin, end] = parameters_.range_of(block, teams_.part());
  const at::Tensor own = layer.part.narrow(0, 0, end - begin);
  parameters_.place_values(block, at::zeros_like(block.values));
  block.values.narrow(0, begin, end - begin).copy_(own);
  change();
  own.copy_(block.values.narrow(0, begin, end - begin));
  parameters_.free_values(block);
}

void WeightShards::begin_down(std::function<void(std::size_t layer)> on_layer) {
  fetched_ = 0;
  on_layer_ = std::move(on_layer);
}

void WeightShards::end_down() {
  while (divided_ && fetched_ < layers_.size())
    const LayerInUse here(this, layers_.size() - 1 - fetched_, Direction::kDown);
  on_layer_ = {};
}

}  // namespace antisd::inline optim
