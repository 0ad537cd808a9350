// Forward and backward over the sequences of a mini-batch, and the optimizer's step: the same for
// responses and for documents.
//
//   GradientPass gradients(model, optimizer, {.micro_batch_tokens = 32'768});
//   const UpdateReport report = gradients.update(lr, {sequences}, mean, objective);
//
// Micro-batches change the update by rounding alone: the mean is over the targets of the whole
// mini-batch, on all processes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "inference/token_runs.h"
#include "model/not_finite.h"
#include "optim/adamw.h"
#include "trainer/objective.h"

namespace antisd::inline trainer {

// A number that is none, and the sequence it came from. The weights are as they were before the
// mini-batch.
class NotFiniteError : public NotFinite {
 public:
  NotFiniteError(const std::string& what, std::size_t number, TokenScores student = {},
                 TokenScores teacher = {});
  const std::size_t number;            // TargetSequence::number
  const TokenScores student, teacher;  // where the pass had got that far
};

struct GradientPassOptions {
  std::int64_t micro_batch_tokens = 32'768;
  bool gradient_checkpointing = true;
  double temperature = 1;  // everything is under logits / temperature
  PackOptions pack = {};
  std::string noun = "response";      // what a sequence is called in messages
  const CausalLm* teacher = nullptr;  // of objectives that need one
};

// The sequences of a mini-batch; `shown` are the same targets after the teacher's prompts, where
// the objective needs a teacher.
struct PassBatch {
  std::vector<TargetSequence> sequences, shown = {};
};

class GradientPass {
 public:
  using OnPass = std::function<void(const PassView& pass)>;

  // Borrows model and optimizer. `on_pass` sees each micro-batch once its loss is known to be
  // finite.
  GradientPass(CausalLm& model, AdamW& optimizer, GradientPassOptions options, OnPass on_pass = {})
      : model_(model),
        optimizer_(optimizer),
        options_(std::move(options)),
        on_pass_(std::move(on_pass)) {}

  // Gradients, then the optimizer's step. NotFiniteError, or NotFinite where no sequence alone is
  // to blame: the weights are then as they were.
  UpdateReport update(double lr, const PassBatch& batch, MeanOver mean, Objective& objective);

  // Leaves the gradients, times gradient_scale(), with the optimizer.
  void add_gradients(const PassBatch& batch, MeanOver mean, Objective& objective);

  // Through the model with gradients; a shared prompt counts once.
  std::int64_t tokens() const { return tokens_; }

 private:
  PassView pass(const PassBatch& batch, IndexRange run, MeanOver mean, Objective& objective);
  [[noreturn]] void find_culprit(const PassBatch& batch, MeanOver mean, Objective& objective,
                                 const std::string& parameter);

  CausalLm& model_;
  AdamW& optimizer_;
  GradientPassOptions options_;
  OnPass on_pass_;
  std::int64_t tokens_ = 0;
};

// Runs of at most `limit` tokens, what neighbours share counted once.
std::vector<IndexRange> cut_sequences(std::span<const TargetSequence> sequences,
                                      std::int64_t limit);

// The objective's sums alone, without gradients; of one that needs no teacher.
void measure(const CausalLm& model, std::span<const TargetSequence> sequences,
             const GradientPassOptions& options, MeanOver mean, Objective& objective);

// What a mean over these sequences alone is over.
MeanOver mean_over(std::span<const TargetSequence> sequences);

}  // namespace antisd::inline trainer
