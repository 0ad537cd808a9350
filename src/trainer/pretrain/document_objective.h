// Supervised text as an objective: the cross-entropy of the tokens in the loss.
//
//   DocumentObjective objective;
//   gradients.update(lr, {document_sequences(documents)}, mean, objective);
//   objective.sums.mean("loss");  // nats, over the tokens in the loss
#pragma once

#include <span>
#include <vector>

#include "data/documents.h"
#include "trainer/objective.h"

namespace antisd::inline trainer {

// Numbered from 0; their targets are the tokens in the loss.
std::vector<TargetSequence> document_sequences(std::span<const TrainingDocument> documents);

class DocumentObjective : public Objective {
 public:
  // Only the sum of the losses leaves the device, in nats.
  ObjectiveNeeds needs() const override { return {.scores_on_host = false}; }
  Derivative differentiate(const PassView& pass) override;
  void account(std::span<const TargetSequence> sequences, const MicroBatchResult& result,
               MeanOver mean) override;
};

}  // namespace antisd::inline trainer
