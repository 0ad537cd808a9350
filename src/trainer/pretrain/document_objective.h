// Supervised text as an objective: the cross-entropy of the tokens in the loss.
//
//   DocumentObjective objective(model.device());
//   gradients.update(lr, {document_sequences(documents)}, mean, objective);
//   objective.finish();
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
  explicit DocumentObjective(at::Device device);

  // The sum of the log-probabilities stays on the device until finish().
  ObjectiveNeeds needs() const override { return {.scores_on_host = false}; }
  Derivative differentiate(const PassView& pass) override;
  void finish() override;

 private:
  at::Tensor loss_;  // fp64 scalar: nats
  std::int64_t counted_ = 0;
};

}  // namespace antisd::inline trainer
