// What is learnt from a pass over sequences: an objective declares what it needs of the pass, and
// returns the derivative of its mean and named sums for the record.
//
//   PolicyObjective objective(shaping, batch, off_policy);       // or SDPO, or supervised text
//   gradients.update(lr, mini_batch, mean, objective);           // trainer/gradient_pass.h
//   objective.sums.mean("loss");
//
// A new token loss or aggregation is such a class in its own file. Micro-batches, loss scaling, NaN
// checks and the search for the sequence that caused a NaN are the pass's work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "algo/named_sums.h"
#include "inference/response_pass.h"

namespace antisd::inline trainer {

// What a pass has to provide besides the hidden states.
struct ObjectiveNeeds {
  bool scores_on_host = true;    // PassView::student
  bool gradient_by_logp = true;  // returns Derivative::by_logp
  bool teacher = false;          // PassView::teacher and teacher_hidden
};

// What the mean of a mini-batch's losses is over, counted over all micro-batches and processes.
struct MeanOver {
  std::int64_t tokens = 1, sequences = 1;
};

// One micro-batch after its forward pass. Tensors have one row per target, grouped by sequence.
struct PassView {
  std::span<const TargetSequence> sequences;
  at::Tensor hidden;                 // [targets, width], if gradients are kept
  TokenScoreTensors scores;          // of the targets
  std::vector<TokenScores> student;  // the same on the host, by sequence
  at::Tensor teacher_hidden;         // [targets, width], without gradients
  std::vector<TokenScores> teacher;  // by sequence
  MeanOver mean;
  double scale = 1;  // loss scaling of the tensors below: gradient_scale()
};

// Of the mean, which most objectives take over PassView::mean.tokens. Empty or undefined members
// count as zero.
struct Derivative {
  std::vector<double> loss;  // per target, before the mean; empty: not known on the host
  // With respect to each target's log-probability, unscaled; a single value applies to all.
  std::vector<double> by_logp;
  at::Tensor by_hidden;  // [targets, width], scaled
  at::Tensor by_head;    // [rows of the head, width], fp32, scaled
};

class Objective {
 public:
  virtual ~Objective() = default;
  virtual ObjectiveNeeds needs() const = 0;
  virtual Derivative differentiate(const PassView& pass) = 0;
  // Call it after the last pass: adds what is still on the device to the sums.
  virtual void finish() {}

  NamedSums sums;  // over all passes
};

}  // namespace antisd::inline trainer
