// The loss of documents: cross-entropy of the tokens that count.
//
//   const DocumentSums sums = add_gradients(model, optimizer, documents, options);
//   optimizer.step(lr, gradient_scale(model.dtype(), sums.counted));
#pragma once

#include <span>
#include <vector>

#include "data/documents.h"
#include "optim/adamw.h"

namespace antisd {

struct LossOptions {
  std::int64_t micro_batch_tokens = 32'768;
  bool gradient_checkpointing = false;
};

struct DocumentSums {
  at::Tensor loss;  // fp64 scalar on the device: nats, over the tokens that count
  std::int64_t tokens = 0, counted = 0;

  double fetch_mean() const;  // waits for the device
};

// Runs of at most `limit` tokens, in their order; a longer document goes alone.
std::vector<std::span<const TrainingDocument>> cut_documents(
    std::span<const TrainingDocument> documents, std::int64_t limit);

// No gradients.
DocumentSums measure_loss(const CausalLm& model, std::span<const TrainingDocument> documents,
                          const LossOptions& options);

// Leaves the gradient of the mean over all tokens that count with the optimizer, times
// gradient_scale(model.dtype(), counted).
DocumentSums add_gradients(CausalLm& model, AdamW& optimizer,
                           std::span<const TrainingDocument> documents, const LossOptions& options);

}  // namespace antisd
