// How many elements of a model's parameters a rank holds, from the shape alone: what
// ParameterStore, GradientSum and WeightShards allocate, gaps included (kPieceElements). Of ranks
// that hold different numbers, the largest.
//
//   const Holdings held(shape, {.size = 16, .members = 8, .shard = Shard::kOptimizer});
//   const double masters = 4 * held.own_part();  // bytes
#pragma once

#include <cstdint>
#include <vector>

#include "model/model_shape.h"
#include "model/offload.h"

namespace antisd::inline trainer {

// What the ranks of a team hold only once between them; each form includes those before it.
enum class Shard { kNone, kOptimizer, kGradients, kWeights };

struct RankDivision {
  int size = 1;     // ranks of the run
  int members = 1;  // of a team (optim/teams.h); 1 for Shard::kNone
  Shard shard = Shard::kNone;
  // With kWeights: whether layers are whole while the run samples and scores. If not, every pass
  // fetches each layer (optim/weight_shards.h).
  bool whole_between = true;
  Offload offload = Offload::kNone;  // what of masters and moments is on the host
};

class Holdings {
 public:
  Holdings(const ModelShape& shape, const RankDivision& ranks);

  // Of the whole model; a quantised parameter has no elements, but bytes of codes and scales.
  double all() const;
  double quantized_bytes() const { return quantized_bytes_; }
  double largest_quantized() const { return largest_quantized_; }  // elements of a matrix
  double trainable() const;
  double gradients() const;  // trainable without gaps: the backward pass makes separate tensors
  double of_layers() const;
  double beside_layers() const { return all() - of_layers(); }
  double trainable_beside_layers() const;
  double largest_layer() const;
  double most_gradients() const;  // of a layer

  double own_part() const;          // masters and moments: those of the first member
  double largest_own_part() const;  // of a block
  // Values of layers where weights are divided (optim/weight_shards.h): parts have one size, so a
  // layer that was collected is longer by the last part's rest.
  double own_part_of_layers() const;
  double whole_layers() const { return sent_of_layers(); }
  double largest_whole_layer() const;
  double own_chunk() const;  // whose gradients the rank adds up
  double sent() const;       // gradients as they are sent: all ranks' chunks have one size
  double sent_of_layers() const;

 private:
  struct Block {
    bool is_layer = false;
    std::int64_t all = 0, trainable = 0, gradients = 0;
  };
  template <typename Count>
  double sum(Count count) const;
  std::int64_t chunk(std::int64_t elements) const;
  std::int64_t part(std::int64_t elements) const;

  std::vector<Block> blocks_;
  double quantized_bytes_ = 0, largest_quantized_ = 0;
  RankDivision ranks_;
};

}  // namespace antisd::inline trainer
