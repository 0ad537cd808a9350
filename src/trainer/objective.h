// What is learnt from a pass over sequences: an objective declares what it needs of the pass,
// returns the derivative of its mean, and adds named sums for the record.
//
//   PolicyObjective objective(shaping, batch, off_policy);       // or SDPO, or supervised text
//   gradients.update(lr, mini_batch, mean, objective);           // trainer/gradient_pass.h
//   objective.sums.mean("loss");
//
// A new token loss or aggregation is such a class in its own file. Micro-batches, ranks, loss
// scaling, NaN checks and the search for the sequence that caused a NaN are the pass's work.
//
// A micro-batch is differentiated by one rank; its sums are added by every rank, in the order of
// the micro-batches, so that all have the same bits, those of one process.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "algo/aggregation.h"
#include "algo/named_sums.h"
#include "inference/response_pass.h"

namespace antisd::inline trainer {

// What a pass has to provide besides the hidden states.
struct ObjectiveNeeds {
  bool scores_on_host = true;    // PassView::student
  bool gradient_by_logp = true;  // returns Derivative::by_logp
  bool teacher = false;          // PassView::teacher and teacher_hidden
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
  at::Tensor loss_sum;       // fp64 scalar, where only the sum over the targets is known
  // With respect to each target's log-probability, unscaled; a single value applies to all.
  std::vector<double> by_logp;
  at::Tensor by_hidden;  // [targets, width], scaled
  at::Tensor by_head;    // [rows of the head, width], fp32, scaled
};

// What the pass over a micro-batch found, on the host.
struct MicroBatchResult {
  std::vector<TokenScores> student, teacher;  // by sequence, where the objective needs them
  std::vector<double> loss;                   // as in Derivative
  double loss_sum = 0;
};

class Objective {
 public:
  virtual ~Objective() = default;
  virtual ObjectiveNeeds needs() const = 0;
  virtual Derivative differentiate(const PassView& pass) = 0;
  // Adds a micro-batch to the sums.
  virtual void account(std::span<const TargetSequence> sequences, const MicroBatchResult& result,
                       MeanOver mean) = 0;

  NamedSums sums;  // over all micro-batches
};

}  // namespace antisd::inline trainer
