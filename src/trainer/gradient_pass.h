// Forward and backward passes over the sequences of a mini-batch, and the optimizer's step: the
// same for responses and documents.
//
//   GradientPass gradients(model, optimizer, {.micro_batch_tokens = 32'768});
//   const UpdateReport report = gradients.update(lr, {sequences}, mean, objective);
//
// Micro-batches change the update only by rounding: the mean is over the targets of the whole
// mini-batch.
//
// All ranks call with the same sequences. The micro-batches are dealt out in rounds, one per rank,
// in the order of the ranks. On a CPU the result is bit for bit that of one process with the same
// micro-batches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "inference/token_runs.h"
#include "model/not_finite.h"
#include "optim/adamw.h"
#include "trainer/objective.h"
#include "trainer/teacher_states.h"

namespace antisd::inline trainer {

// A value that is not finite, and the sequence it came from. The weights are those before the
// mini-batch.
class NotFiniteError : public NotFinite {
 public:
  NotFiniteError(const std::string& what, std::size_t number, TokenScores student = {},
                 TokenScores teacher = {});
  const std::size_t number;            // TargetSequence::number
  const TokenScores student, teacher;  // if the pass got that far
};

struct GradientPassOptions {
  std::int64_t micro_batch_tokens = 32'768;
  std::int64_t micro_batches = 0;  // at least so many, as far as there are sequences; 0: one a rank
  std::size_t kept_layers = 0;     // the last ones; the backward pass recomputes the others
  double temperature = 1;          // all scores are under logits / temperature
  PackOptions pack = {};
  std::string noun = "response";      // name of a sequence in messages
  const CausalLm* teacher = nullptr;  // for objectives that need one
  // In place of the teacher's passes: what another model saw before the update. Borrowed.
  const TeacherStates* states = nullptr;
};

// train.deterministic; on a CPU the order is fixed anyway.
inline SumOrder sum_order(const RunConfig& config, at::Device device) {
  return config.train.deterministic && device.is_cuda() ? SumOrder::kFixed : SumOrder::kAny;
}

// The sequences of a mini-batch; `shown` are the same targets after the teacher's prompts, if the
// objective needs a teacher.
struct PassBatch {
  std::vector<TargetSequence> sequences, shown = {};
};

class GradientPass {
 public:
  using OnMicroBatch = std::function<void(std::span<const TargetSequence> sequences,
                                          const MicroBatchResult& result)>;

  // Borrows model and optimizer. `on_micro_batch` gets the result of every micro-batch, on every
  // rank, in their order, after the last of them.
  GradientPass(CausalLm& model, AdamW& optimizer, GradientPassOptions options,
               OnMicroBatch on_micro_batch = {})
      : model_(model),
        optimizer_(optimizer),
        ranks_(optimizer.ranks()),
        options_(std::move(options)),
        on_micro_batch_(std::move(on_micro_batch)) {}

  // Gradients, then the optimizer's step. NotFiniteError, or NotFinite if no single sequence causes
  // it or another rank has it; the weights are then unchanged.
  UpdateReport update(double lr, const PassBatch& batch, MeanOver mean, Objective& objective);

  // Leaves the gradients, scaled by gradient_scale(), in the parameters or, with several ranks, in
  // the optimizer's sum.
  void add_gradients(const PassBatch& batch, MeanOver mean, Objective& objective);

  // Number of tokens through the model with gradients, on this rank; a shared prompt counts once.
  std::int64_t tokens() const { return tokens_; }

 private:
  // A micro-batch before its backward pass.
  struct Forward {
    PassView view;
    Derivative derivative;
  };
  Forward look(const PassBatch& batch, IndexRange run, MeanOver mean, Objective& objective);
  [[noreturn]] void find_culprit(const PassBatch& batch, MeanOver mean, Objective& objective,
                                 const std::string& parameter);

  CausalLm& model_;
  AdamW& optimizer_;
  Communicator& ranks_;
  GradientPassOptions options_;
  OnMicroBatch on_micro_batch_;
  std::int64_t tokens_ = 0;
};

// The micro-batches of a mini-batch. Micro-batch i is the work of rank i modulo their number.
std::vector<IndexRange> micro_batches_of(std::span<const TargetSequence> sequences,
                                         const GradientPassOptions& options,
                                         const Communicator& ranks);

// Runs of at most `limit` tokens; tokens that neighbours share count once. With `at_least` > 1 and
// fewer such runs, that many runs of about the same cost, or fewer where sequences are too unequal
// or too few. A function of its arguments alone.
std::vector<IndexRange> cut_sequences(std::span<const TargetSequence> sequences, std::int64_t limit,
                                      std::int64_t at_least = 1);

// Only the objective's sums, without gradients; for objectives without a teacher. Ranks as above.
void measure(const CausalLm& model, Communicator& ranks, std::span<const TargetSequence> sequences,
             const GradientPassOptions& options, MeanOver mean, Objective& objective);

// The counts for a mean over only these sequences.
MeanOver mean_over(std::span<const TargetSequence> sequences);

}  // namespace antisd::inline trainer
