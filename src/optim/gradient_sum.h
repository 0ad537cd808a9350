// Gradients summed over micro-batches and ranks, while the backward pass still runs.
//
//   GradientSum sum(parameters, teams, 4);
//   for (int round = 0; round < rounds; ++round) {
//     sum.begin_round(active);  // each of the first `active` ranks has a micro-batch
//     if (ranks.rank() < active) loss.backward();
//     sum.end_round();
//   }
//   const std::vector<at::Tensor> own = sum.take_parts();  // of the elements that it updates
//
// The order of the additions is that of the micro-batches: round by round, in a round rank by rank.
// One process that has all micro-batches adds in that order too, so it gets the same bits. For the
// same reason a rank without a micro-batch adds nothing, not even zeros.
//
// A block is sent once all its gradients are there. Layers come in reverse order, each as soon as
// the backward pass has left it; what is left follows at the end. Each rank receives its chunk
// (teams.h) from all and adds.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "optim/teams.h"

namespace antisd::inline optim {

class GradientSum {
 public:
  // Borrows both. `in_flight`: so many blocks may be under way before the backward pass waits for
  // the oldest; each takes the memory of its gradients twice.
  GradientSum(ParameterStore& parameters, Teams& teams, std::size_t in_flight);
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  // All ranks call these together. Afterwards the parameters have no gradients.
  void begin_round(int active);
  void end_round();
  // In a round: the backward pass has left all layers above this one, whether or not each of their
  // parameters has a gradient.
  void send_above(std::size_t layer);

  // By block: the sum of the elements that this rank updates, [elements] fp32. Undefined for blocks
  // without trainable parameters, or if there were no rounds. All ranks call it.
  std::vector<at::Tensor> take_parts();

  // Whether any rank had a gradient of the parameter, by its number in the store. All ranks call
  // it.
  std::vector<bool> has_gradients();

  void drop();

 private:
  struct Sent;
  class Hook;

  void count(std::size_t block);  // one more parameter of the block has its gradient
  void send(std::size_t block);
  void add_oldest();

  ParameterStore& parameters_;
  Teams& teams_;
  std::size_t in_flight_;
  int active_ = 0;
  bool in_round_ = false;
  std::vector<std::size_t> order_;    // of the blocks' sending
  std::size_t sent_ = 0;              // of order_, in this round
  std::vector<std::size_t> missing_;  // by block: parameters without a gradient in this round
  std::deque<Sent> under_way_;
  std::vector<at::Tensor> sums_;  // by block: this rank's chunk, fp32
  std::vector<bool> seen_;        // by parameter
};

}  // namespace antisd::inline optim
