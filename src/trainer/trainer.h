// The training loop: Algorithm 1 of the paper, one method or another.
//
//   Trainer trainer({config, state, problems, renderer, *grader, *processes, recorder}, {...});
//   const bool whole = trainer.run([] { return StopSignals::received(); });
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "algo/method.h"
#include "config/run_config.h"
#include "context/context_builder.h"
#include "data/prompt_set.h"
#include "model/not_finite.h"
#include "optim/schedule.h"
#include "trainer/alike_groups.h"
#include "trainer/batch_grader.h"
#include "trainer/recorder.h"
#include "trainer/sampler.h"
#include "trainer/train_state.h"
#include "trainer/updater.h"

namespace antisd {

// All borrowed; they outlive the trainer.
struct TrainerParts {
  const RunConfig& config;
  TrainState& state;
  const PromptSet& problems;
  const PromptRenderer& renderer;
  Grader& grader;
  Communicator& processes;
  Recorder& recorder;
  Console& console;
  const CausalLm* reference = nullptr;  // needed where loss.kl_coef > 0
  std::vector<TokenId> stop_ids;
  std::filesystem::path origin;  // whose config and tokenizer files checkpoints carry
  // Evaluates the policy as it is after so many steps: what goes into that step's row, with
  // timing_s/eval among it. Nothing where it was stopped before it was done. Empty: never.
  std::function<std::optional<MetricSet>(std::int64_t step)> evaluate = {};
};

// Whether eval.every asks for an evaluation after so many steps: each so many, and the last.
bool evaluation_due(const RunConfig& config, std::int64_t step);

class Trainer {
 public:
  // InputError for a method that cannot be trained here.
  explicit Trainer(TrainerParts parts);

  // Up to train.steps, or until `stop` says so between two steps; saves at the end of either, or
  // RunError, "not saved". False where it was stopped. The errors of graders and gate end it within
  // a step: what the steps before learnt is saved then, but not where a number is not finite.
  bool run(const std::function<bool()>& stop);

 private:
  // By rollout number, of passes before the update; empty where nobody asks for them.
  struct ScoresBefore {
    std::vector<TokenScores> student, reference;
  };

  void step();
  void step_or_save();
  const CausalLm& teacher() const {
    return state_.teacher ? state_.teacher->model() : state_.model;
  }
  PromptBatch next_prompts();
  RolloutBatch sample(const PromptBatch& prompts);
  void grade(const PromptBatch& prompts, RolloutBatch& batch);
  ContextBatch build_contexts(const PromptBatch& prompts, const RolloutBatch& batch) const;
  std::vector<TokenScores> score_contexts(const ContextBatch& contexts,
                                          const RolloutBatch& batch) const;
  ScoresBefore score_before(const PromptBatch& prompts, const RolloutBatch& batch) const;
  std::vector<TokenScores> score_rollouts(
      const CausalLm& model, const RolloutBatch& batch,
      const std::function<const std::vector<TokenId>&(std::size_t)>& prompt_of) const;
  GateInput gate_statistic_of(std::span<const TokenScores> teacher,
                              std::span<const TokenScores> student) const;
  UpdateResult update_policy(const StepRecord& record, const ScoresBefore& before);
  std::string dump_culprit(const StepRecord& record, std::size_t rollout,
                           const std::string& problem);
  void warn_of_failed_grades(const RolloutBatch& batch);
  void give_up_without_grades(const GradeCounts& own);
  void tell_of_gate(const StepRecord& record);
  void record_step(const StepRecord& record);
  std::optional<MetricSet> evaluate(std::int64_t step);
  void evaluate_start();
  CheckpointKeeper::Write writer() const;
  void save();
  void save_last(const std::function<bool()>& stop);
  RunError diverged(const NotFinite& error) const;

  TrainerParts parts_;
  const RunConfig& config_;
  TrainState& state_;
  Method method_;
  Schedule schedule_;
  GroupSampler sampler_;
  BatchGrader grader_;
  ContextBuilder context_;
  Updater updater_;
  std::optional<double> peak_flops_;  // of the device, where it is known
  MetricSet last_metrics_;
  CheckpointKeeper keeper_;
  std::int64_t ungraded_steps_ = 0;  // in a row; a run that is resumed counts from 0
  AlikeGroups alike_;
  bool evaluation_missing_ = false;  // of the last step that one was due at
};

}  // namespace antisd
