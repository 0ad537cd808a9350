// The gradient pass: s from its own forward, each token's loss from algo, and the backward pass
// started from the loss's derivative by the log-probability.
//
//   const UpdateResult update = updater.step(state.model, state.optimizer, lr,
//                                            {prompts, batch, shaping});
//
// Micro-batches change the update by rounding alone: the mean is over the response tokens of the
// whole mini-batch, on all processes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algo/contexts.h"
#include "algo/prompts.h"
#include "algo/rollouts.h"
#include "algo/shaping.h"
#include "algo/update_totals.h"
#include "config/run_config.h"
#include "model/not_finite.h"
#include "optim/adamw.h"
#include "trainer/micro_batches.h"

namespace antisd {

// All by rollout number. Borrowed for the call.
struct UpdateInput {
  const PromptBatch& prompts;
  const RolloutBatch& batch;
  const Shaping& shaping;
  std::span<const TokenScores> old_scores = {};  // before the step's first update; none: ratio 1
  std::span<const TokenScores> reference = {};   // needed where kl_coef > 0
  std::span<const Context> contexts = {};        // needed where the method distils
  const CausalLm* teacher = nullptr;             // and its teacher, where it is not the student
};

struct UpdateResult {
  UpdateTotals totals;  // over all mini-batches, epochs and processes
  // As the advantage saw them: of the first pass over each response. Empty where the grade failed.
  std::vector<TokenScores> student;                  // s, H_S
  std::vector<std::vector<double>> token_advantage;  // A_{i,t}
  Moments probability_gap;  // |p of the sampler - p of the first pass|, over tokens
  double grad_norm = 0;     // mean over the mini-batches, before clipping
  std::int64_t micro_batches = 0;
  double tokens = 0;  // through the model with gradients; a shared prompt counts once
  std::int64_t updates = 0;
};

// A number that is none, and the response it came from. The weights are as they were before the
// mini-batch.
class NotFiniteError : public NotFinite {
 public:
  NotFiniteError(const std::string& what, std::size_t rollout, TokenScores student = {});
  const std::size_t rollout;
  const TokenScores student;  // where the pass had got that far
};

class Updater {
 public:
  struct Options {
    std::int64_t minibatches = 1, epochs = 1;
    std::int64_t micro_batch_tokens = 32'768;
    bool gradient_checkpointing = true;
    double temperature = 1;  // of the rollout
  };
  Updater(const Options& options, Communicator& processes)
      : options_(options), processes_(processes) {}

  // Whether the student has to be scored before the first update.
  bool needs_old_scores() const { return options_.minibatches * options_.epochs > 1; }

  // A mini-batch without a graded response updates nothing.
  UpdateResult step(CausalLm& model, AdamW& optimizer, double lr, const UpdateInput& input) const;

  // Forward and backward over one mini-batch: leaves the gradients with the optimizer and adds what
  // was seen to `result`. For step(), and for tests of the gradient itself.
  void add_gradients(CausalLm& model, AdamW& optimizer, const UpdateInput& input,
                     const RolloutNumbers& mini_batch, std::int64_t mean_tokens,
                     UpdateResult& result) const;

 private:
  void pass(CausalLm& model, const UpdateInput& input, std::span<const std::size_t> rollouts,
            std::int64_t mean_tokens, UpdateResult& result) const;
  // The same with SDPO's loss, which has no advantage and no ratio.
  void distilling_pass(CausalLm& model, const UpdateInput& input,
                       std::span<const std::size_t> rollouts, std::int64_t mean_tokens,
                       UpdateResult& result) const;
  [[noreturn]] void find_culprit(CausalLm& model, AdamW& optimizer, const UpdateInput& input,
                                 const RolloutNumbers& mini_batch, std::int64_t mean_tokens,
                                 const std::string& parameter) const;

  Options options_;
  Communicator& processes_;
};

// Sums over all processes, the same bits on each.
void sum_over(Communicator& processes, Moments& moments);
void sum_over(Communicator& processes, UpdateTotals& totals);

}  // namespace antisd
