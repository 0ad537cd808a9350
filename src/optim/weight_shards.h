// The values of layers in parts: while a mini-batch is computed, each rank of a team keeps its part
// of every layer and fetches the rest of a layer when a pass comes to it.
//
//   shards.divide();                        // from now on a rank holds 1/L of the layers
//   shards.make_passes(1, [&] { loss = forward(); });
//   shards.begin_down([](std::size_t) {});  // the backward pass, with recomputed layers
//   loss.backward();
//   shards.end_down();
//   shards.gather();                        // whole again: for sampling, scoring and saving
//
// Two layers are whole at a time: the one in use and the next, which is under way. Embedding and
// head stay whole. All ranks of a team fetch together, so all make the same passes: a rank with
// nothing to compute, or whose work failed, takes part without computing. They may also stay
// divided for good: sampling then fetches every layer for every token, which only serves where the
// whole weights do not fit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/layer_source.h"
#include "optim/teams.h"

namespace antisd::inline optim {

class WeightShards : public LayerSource {
 public:
  // Borrows both. A layer with frozen parameters stays whole.
  WeightShards(ParameterStore& parameters, Teams& teams);

  bool divided() const { return divided_; }
  bool has_all() const override { return !divided_; }
  bool divides(const ParameterBlock& block) const;

  // Each does nothing if it is so already. All ranks call them.
  void divide();
  void gather();

  // While they are divided: this rank's part of a block, in the order of its trainable elements.
  const at::Tensor& part(const ParameterBlock& block) const { return layer(block).part; }

  // RankLost if one is lost.
  void make_passes(std::optional<int> passes, const std::function<void()>& work) override;
  void change(std::size_t layer, const std::function<void()>& change) override;

  // Around a pass downwards. `on_layer` is called before a layer is fetched: all above it are done.
  void begin_down(std::function<void(std::size_t layer)> on_layer);
  void end_down();

  void fetch(std::size_t layer, Direction direction) override;
  void drop(std::size_t layer) noexcept override;

 private:
  struct Layer {
    const ParameterBlock* block = nullptr;  // null: it stays whole
    at::Tensor part;                        // [elements of a part]
    at::Tensor arriving;                    // [members x elements of a part]
    std::unique_ptr<Transfer> transfer = {};
    int uses = 0;
  };
  const Layer& layer(const ParameterBlock& block) const;
  std::int64_t part_elements(const ParameterBlock& block) const;
  bool any_works(bool own);
  void accompany();
  void start(Layer& layer);
  void finish(Layer& layer);

  ParameterStore& parameters_;
  Teams& teams_;
  std::vector<Layer> layers_;
  bool divided_ = false;
  std::size_t fetched_ = 0;  // layers, in this pass or these passes
  bool open_ = false;        // in passes of any number: each is announced
  std::function<void(std::size_t layer)> on_layer_;
};

}  // namespace antisd::inline optim
