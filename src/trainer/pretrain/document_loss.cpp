#include "trainer/pretrain/document_loss.h"

#include <ATen/ATen.h>

#include "ops/token_scores.h"

namespace antisd {
namespace {

// The log-probabilities of the tokens that count, in the order of the documents.
at::Tensor log_probabilities(const CausalLm& model, std::span<const TrainingDocument> documents,
                             Pass pass) {
  std::vector<std::vector<TokenId>> sequences;
  sequences.reserve(documents.size());
  for (const TrainingDocument& document : documents)
    sequences.push_back(document.ids);
  const PackedBatch batch = pack(sequences, model.device(), {.share = false});
  std::vector<std::int64_t> rows;
  std::vector<TokenId> targets;
  for (std::size_t d = 0; d < documents.size(); ++d) {
    const TrainingDocument& document = documents[d];
    for (std::size_t i = 1; i < document.ids.size(); ++i) {
      if (!document.counts[i]) continue;
      rows.push_back(batch.rows[d][i - 1]);
      targets.push_back(document.ids[i]);
    }
  }
  const at::Tensor hidden =
      model.hidden_states(batch, pass)
          .index_select(0,
                        at::tensor(at::ArrayRef<std::int64_t>(rows), at::kLong).to(model.device()));
  return token_scores(hidden, model.head().weight,
                      at::tensor(at::ArrayRef<TokenId>(targets), at::kInt).to(model.device()),
                      /*temperature=*/1, model.shape().vocabulary)
      .logp;
}

DocumentSums count(std::span<const TrainingDocument> documents, at::Device device) {
  DocumentSums sums{.loss = at::zeros({}, at::TensorOptions(device).dtype(at::kDouble))};
  for (const TrainingDocument& document : documents) {
    sums.tokens += std::ssize(document.ids);
    sums.counted += std::int64_t(document.tokens_that_count());
  }
  return sums;
}

}  // namespace

double DocumentSums::fetch_mean() const {
  return loss.item<double>() / static_cast<double>(counted);
}

std::vector<std::span<const TrainingDocument>> cut_documents(
    std::span<const TrainingDocument> documents, std::int64_t limit) {
  std::vector<std::span<const TrainingDocument>> runs;
  std::size_t begin = 0;
  std::int64_t tokens = 0;
  for (std::size_t d = 0; d < documents.size(); ++d) {
    const std::int64_t own = std::ssize(documents[d].ids);
    if (d > begin && tokens + own > limit) {
      runs.push_back(documents.subspan(begin, d - begin));
      begin = d;
      tokens = 0;
    }
    tokens += own;
  }
  if (begin < documents.size()) runs.push_back(documents.subspan(begin));
  return runs;
}

DocumentSums measure_loss(const CausalLm& model, std::span<const TrainingDocument> documents,
                          const LossOptions& options) {
  const at::NoGradGuard no_grad;
  DocumentSums sums = count(documents, model.device());
  for (const auto& run : cut_documents(documents, options.micro_batch_tokens))
    sums.loss.sub_(log_probabilities(model, run, Pass::kInference).sum(at::kDouble));
  return sums;
}

DocumentSums add_gradients(CausalLm& model, AdamW& optimizer,
                           std::span<const TrainingDocument> documents,
                           const LossOptions& options) {
  DocumentSums sums = count(documents, model.device());
  const auto runs = cut_documents(documents, options.micro_batch_tokens);
  const double derivative =
      -gradient_scale(model.dtype(), sums.counted) / static_cast<double>(sums.counted);
  try {
    for (const auto& run : runs) {
      const at::Tensor logp =
          log_probabilities(model, run, training_pass(options.gradient_checkpointing));
      logp.backward(at::full_like(logp, derivative));
      sums.loss.sub_(logp.detach().sum(at::kDouble));
      if (runs.size() > 1) optimizer.take_gradients();
    }
  } catch (...) {
    optimizer.drop_gradients();
    throw;
  }
  return sums;
}

}  // namespace antisd
