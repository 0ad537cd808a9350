#include "trainer/pretrain/document_objective.h"

#include <ATen/ATen.h>

#include "core/check.h"

namespace antisd::inline trainer {

std::vector<TargetSequence> document_sequences(std::span<const TrainingDocument> documents) {
  std::vector<TargetSequence> sequences(documents.size());
  for (std::size_t d = 0; d < documents.size(); ++d) {
    sequences[d].ids = documents[d].ids;
    sequences[d].number = d;
    ANTISD_CHECK(documents[d].counts.empty() || !documents[d].counts[0]);
    for (std::size_t i = 1; i < documents[d].ids.size(); ++i) {
      if (documents[d].counts[i]) sequences[d].targets.push_back(std::int64_t(i));
    }
  }
  return sequences;
}

DocumentObjective::DocumentObjective(at::Device device)
    : loss_(at::zeros({}, at::TensorOptions(device).dtype(at::kDouble))) {}

Derivative DocumentObjective::differentiate(const PassView& pass) {
  loss_.sub_(pass.scores.logp.detach().sum(at::kDouble));
  counted_ += pass.scores.logp.numel();
  return {.by_logp = {-1 / static_cast<double>(pass.mean.tokens)}};
}

void DocumentObjective::finish() {
  sums["loss"].add_sum(loss_.item<double>(), counted_);
  loss_.zero_();
  counted_ = 0;
}

}  // namespace antisd::inline trainer
