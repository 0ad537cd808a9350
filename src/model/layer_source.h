// Where the values of layers come from if they are not always there: ranks may divide them, and
// fetch each layer when a pass comes to it.
//
//   const LayerInUse here(source, layer, Direction::kUp);   // its values may be read now
//
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace antisd::inline model {

// In which order a pass uses the layers: a forward pass from the first up, a backward pass down.
enum class Direction { kUp, kDown };

class LayerSource {
 public:
  virtual ~LayerSource() = default;
  // Returns when the layer's values are there, and may begin to fetch the one that a pass in this
  // direction needs after it. Calls may be nested.
  virtual void fetch(std::size_t layer, Direction direction) = 0;
  virtual void drop(std::size_t layer) noexcept = 0;

  virtual bool has_all() const = 0;  // layers are there without being fetched

  // Runs `work`, which makes up to `passes` passes upwards, one after the other; nothing: any
  // number. Ranks fetch together: all call this, and those that make fewer passes, or whose work
  // throws, take part in the others'. Without it, passes may only be made while all layers are
  // there.
  virtual void make_passes(std::optional<int> passes, const std::function<void()>& work) = 0;

  // Runs `change`, which sets values of a layer. Those that this rank does not keep are not set
  // before it, and lost after it.
  virtual void change(std::size_t layer, const std::function<void()>& change) = 0;
};

// A layer's values are there while this lives. Without a source they always are.
class LayerInUse {
 public:
  LayerInUse(LayerSource* source, std::size_t layer, Direction direction)
      : source_(source), layer_(layer) {
    if (source_) source_->fetch(layer_, direction);
  }
  ~LayerInUse() {
    if (source_) source_->drop(layer_);
  }
  LayerInUse(const LayerInUse&) = delete;
  LayerInUse& operator=(const LayerInUse&) = delete;

 private:
  LayerSource* source_;
  std::size_t layer_;
};

// A pass upwards whose layers leave their last product to the next one (ResidualStream): a layer's
// values are there until the layer after the next begins.
class LayerWalk {
 public:
  explicit LayerWalk(LayerSource* source) : source_(source) {}
  ~LayerWalk() {
    for (; source_ && dropped_ < entered_; ++dropped_)
      source_->drop(dropped_);
  }
  LayerWalk(const LayerWalk&) = delete;
  LayerWalk& operator=(const LayerWalk&) = delete;

  void enter(std::size_t layer) {  // 0, 1, and so on
    if (!source_) return;
    for (; dropped_ + 1 < layer; ++dropped_)
      source_->drop(dropped_);
    source_->fetch(layer, Direction::kUp);
    ++entered_;
  }

 private:
  LayerSource* source_;
  std::size_t entered_ = 0, dropped_ = 0;
};

}  // namespace antisd::inline model
