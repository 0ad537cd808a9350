#include "trainer/pretrain/document_objective.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "trainer/gradient_pass.h"

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

Derivative DocumentObjective::differentiate(const PassView& pass) {
  return {.loss_sum = -pass.scores.logp.detach().sum(at::kDouble),
          .by_logp = {-1 / static_cast<double>(pass.mean.tokens)}};
}

void DocumentObjective::account(std::span<const TargetSequence> sequences,
                                const MicroBatchResult& result, MeanOver /*mean*/) {
  sums["loss"].add_sum(result.loss_sum, mean_over(sequences).tokens);
}

}  // namespace antisd::inline trainer
