// AdamW over a model's parameters: fp32 moments, and fp32 masters for weights of lower precision.
// Weight decay applies to every parameter, as in torch.optim.AdamW by default.
//
//   AdamW optimizer(model, adamw_options(config.optim), ranks);
//   for (const auto& [active, loss] : rounds) {  // of micro-batches, one per rank
//     optimizer.begin_round(active);             // the first `active` ranks have one
//     if (ranks.rank() < active) loss.backward();
//     optimizer.end_round();
//   }
//   const UpdateReport report = optimizer.step(schedule.at(step));
//
// The ranks may divide masters and moments (teams.h), and masters and moments may lie on the host
// (streamed_update.h). However they do, and however many they are, on a CPU the weights after a
// step are bit for bit those of one process with the same micro-batches.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "dist/communicator.h"
#include "model/causal_lm.h"
#include "optim/gradient_fold.h"
#include "optim/gradient_sum.h"
#include "optim/streamed_update.h"
#include "optim/teams.h"
#include "optim/weight_shards.h"

namespace antisd::inline optim {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  double grad_clip = 1.0;  // the largest norm; infinity: no clipping
};

AdamWOptions adamw_options(const OptimConfig& config);

// How ranks divide the optimizer's work, and where its state lies.
struct ShardOptions {
  int members = 1;  // ranks that hold one copy of masters and moments between them
  // Whether a block's gradients are freed as soon as they are sent, and not at the end of the
  // backward pass.
  bool gradients = false;
  // Whether a rank also holds only its part of the layers' values while a mini-batch is computed
  // (weight_shards.h). The model's layers have to be recomputed in the backward pass.
  bool weights = false;
  bool whole_between = true;  // whether the weights are whole again between the updates
  bool even_alone = false;    // one rank goes the way of several too: for benchmarks
  Offload offload = Offload::kNone;
  std::int64_t streamed_elements = kStreamedElements;  // of a piece
};

struct UpdateReport {
  double grad_norm = 0;   // of all parameters together, before clipping
  double clip_scale = 1;  // what the gradients were multiplied by
  bool applied = false;   // false if the norm is not finite: nothing was changed
  std::string culprit;    // in that case, the first parameter with a gradient that is not finite
};

class AdamW {
 public:
  // Lets the model's trainable parameters collect gradients, and allocates their masters and
  // moments in the store. The model and the ranks must outlive the optimizer. All ranks make it
  // together. RunError if the host's memory for them cannot be pinned.
  AdamW(CausalLm& model, AdamWOptions options, Communicator& ranks, ShardOptions shard = {});
  ~AdamW();

  void drop_gradients();

  Communicator& ranks() const { return ranks_; }

  // Around a backward pass: sums the gradients over the ranks and rounds, in fp32. All ranks call
  // them; `active` is the number of those that have a micro-batch. One process whose step has a
  // single micro-batch may leave them out: its gradients are then used as they are, which takes
  // half the memory of sums in fp32 and gives the same bits.
  void begin_round(int active);
  void end_round();

  // For ranks that divide the weights; the others only do `work`. They divide them before the first
  // forward pass of a mini-batch, and step() leaves them as they are between updates, as an error
  // has to: end_passes(). `work` makes up to `passes` forward passes (LayerSource::make_passes).
  void make_passes(int passes, const std::function<void()>& work);
  void end_passes();
  void make_whole();

  // Clips and updates in one pass over the memory. The gradients are cleared, applied or not.
  // Parameters without a gradient and frozen ones do not change. Synchronises with the device once,
  // for the norm, and at the end if it streams. `gradient_scale`: the factor by which the gradients
  // are too large (see below).
  // All ranks call it and get the same report.
  UpdateReport step(double lr, double gradient_scale = 1);

  std::int64_t steps() const { return steps_; }  // applied so far

  // Call it after masters and moments were loaded: sets the step count and the weights from the
  // masters.
  void restore(std::int64_t steps);

  // The values that this rank updates, [own_count]; undefined if there are none.
  at::Tensor own_values(const Parameter& parameter) const;
  // Masters or moments of all of a block's trainable elements, wherever they are held, [elements].
  // All ranks call it. Undefined where there are none.
  at::Tensor whole(const ParameterBlock& block, at::Tensor ParameterBlock::*kind) const;

 private:
  // The elements of a parameter that this rank updates, and their gradient.
  struct Piece {
    Parameter* parameter;
    at::Tensor gradient;
  };
  std::vector<Piece> own_pieces();
  std::vector<Piece> pieces_of_ranks();
  std::vector<double> squares_by_parameter(std::span<const Piece> pieces) const;
  void collect_values();
  std::int64_t part_elements(const ParameterBlock& block) const;  // of a team member
  std::optional<StreamedUpdate> start_streaming() const;
  void update(std::vector<Piece> pieces, const AdamWFactors& factors,
              std::optional<StreamedUpdate>& streamed);

  CausalLm& model_;
  ParameterStore& parameters_;
  AdamWOptions options_;
  Communicator& ranks_;
  std::unique_ptr<Teams> teams_;          // with several ranks
  std::unique_ptr<GradientSum> sum_;      // with several ranks
  std::unique_ptr<GradientFold> fold_;    // with one
  std::unique_ptr<WeightShards> shards_;  // if they divide the weights
  bool whole_between_ = true;
  Offload offload_;
  std::int64_t streamed_elements_;
  std::int64_t steps_ = 0;
};

// Loss scaling: the factor on a mean over `mean_tokens` before its backward pass. In fp16,
// gradients underflow if each token's loss is divided by the number of tokens at once; with the
// nearest power of two as a factor, activations have the gradients of their own token's loss. 1 for
// the other precisions.
double gradient_scale(at::ScalarType dtype, std::int64_t mean_tokens);

}  // namespace antisd::inline optim
