// The update of a step: mini-batches and epochs over its responses, with the method's objective.
//
//   const UpdateResult update = updater.step(state.model, state.optimizer, lr,
//                                            {prompts, batch, shaping});
#pragma once

#include <cstdint>

#include "algo/named_sums.h"
#include "algo/response.h"
#include "algo/shaping.h"
#include "config/run_config.h"
#include "data/prompts.h"
#include "optim/adamw.h"
#include "trainer/gradient_pass.h"
#include "trainer/mini_batches.h"

namespace antisd::inline trainer {

// Borrowed for the call.
struct UpdateInput {
  const PromptBatch& prompts;
  ResponseBatch& batch;  // has `before` and `reference` if needed; the update fills `student`,
                         // `token_advantage` and, for an objective with a teacher, `teacher`
  const Shaping& shaping;
  const CausalLm* teacher = nullptr;      // for an objective that has one other than the student
  const TeacherStates* states = nullptr;  // what another model saw: see look_as_teacher()
};

struct UpdateResult {
  NamedSums sums;        // over all mini-batches and epochs
  double grad_norm = 0;  // mean over the mini-batches, before clipping
  double tokens = 0;     // through the model with gradients; a shared prompt counts once
  std::int64_t updates = 0;
};

class Updater {
 public:
  struct Options {
    std::int64_t minibatches = 1, epochs = 1;
    std::int64_t micro_batch_tokens = 32'768;
    std::int64_t micro_batches = 0;  // as in GradientPassOptions
    std::size_t kept_layers = 0;     // as in GradientPassOptions
    double temperature = 1;          // of the rollout
    SumOrder sums = SumOrder::kAny;  // as in PackOptions
    // loss.rollout_correction = "mask": which tokens count is known before the first pass.
    bool masks = false;
  };
  explicit Updater(const Options& options) : options_(options) {}

  // Whether the student has to be scored before the first update (Response::before).
  bool needs_old_scores() const {
    return options_.minibatches * options_.epochs > 1 || options_.masks;
  }

  // All ranks call it with the whole batch and get the same result. A mini-batch without graded
  // responses is skipped.
  UpdateResult step(CausalLm& model, AdamW& optimizer, double lr, const UpdateInput& input) const;

  // Before the update, for an objective whose teacher is another model: its states for those
  // responses that this rank's micro-batches have. All ranks call it.
  TeacherStates look_as_teacher(const CausalLm& teacher, const PromptBatch& prompts,
                                const ResponseBatch& batch, const LossConfig& loss,
                                Communicator& ranks) const;

 private:
  GradientPassOptions pass_options() const;

  Options options_;
};

// Fills the record of the responses after the first pass over them.
void add_first_sight(std::span<const TargetSequence> sequences, const MicroBatchResult& result,
                     bool off_policy, ResponseBatch& batch, NamedSums& sums);

}  // namespace antisd::inline trainer
