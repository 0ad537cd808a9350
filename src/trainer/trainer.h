// The training loop: Algorithm 1 of the paper, for all methods.
//
// With several ranks each samples and grades a share of the prompts. Then the ranks exchange what
// they have, and from there on every rank has the whole step: contexts, gate, advantages and
// metrics are computed everywhere, the passes over the model are dealt out. Rank 0 writes.
//
//   Trainer trainer({config, state, problems, renderer, *grader, ranks, recorder, console});
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
#include "reward/context_command.h"
#include "reward/grading_stage.h"
#include "run/recorder.h"
#include "trainer/alike_groups.h"
#include "trainer/memory_peaks.h"
#include "trainer/open_groups.h"
#include "trainer/other_teacher.h"
#include "trainer/rank_messages.h"
#include "trainer/sampler.h"
#include "trainer/step_record.h"
#include "trainer/train_state.h"
#include "trainer/updater.h"

namespace antisd::inline trainer {

// The result of an evaluation.
struct EvaluationResult {
  MetricSet metrics;
  double seconds = 0;
};

// All borrowed; they must outlive the trainer.
struct TrainerParts {
  const RunConfig& config;
  TrainState& state;
  const PromptSet& problems;
  const PromptRenderer& renderer;
  Grader& grader;
  Communicator& ranks;  // with several, all make a trainer and call run()
  Recorder& recorder;
  Console& console;
  const CausalLm* reference = nullptr;        // see keeps_reference()
  OtherTeacher* other_teacher = nullptr;      // of method.teacher.path
  ContextCommand* context_command = nullptr;  // of context.command
  std::vector<TokenId> stop_ids;
  // Ends a response besides them, as in RolloutOptions; for benchmarks of given lengths.
  std::function<bool(std::span<const TokenId>)> stops = {};
  std::filesystem::path origin;  // source of the config and tokenizer files of checkpoints
  std::size_t kept_layers = 0;   // MemoryPlan::kept_layers
  // Evaluates the policy after `step` steps. Returns nothing if it was stopped or failed. Empty:
  // never. All ranks call it and get the same.
  std::function<std::optional<EvaluationResult>(std::int64_t step)> evaluate = {};
};

// A save found weights that are not finite.
class Diverged : public RunError {
 public:
  using RunError::RunError;
};

// Whether an evaluation is due after `step` steps: every eval.every steps and after the last.
bool evaluation_due(const RunConfig& config, std::int64_t step);

class Trainer {
 public:
  // InputError for a method that cannot be trained here, and for carried groups that do not fit the
  // configuration.
  explicit Trainer(TrainerParts parts);

  // Trains up to train.steps, or until `stop` returns true between two steps; then saves, or throws
  // RunError, "not saved". False if it was stopped. Errors of graders and gate end it within a
  // step: the earlier steps are then saved, but not if a value is not finite.
  // With several ranks a stop of one is a stop of all.
  bool run(const std::function<bool()>& stop);

 private:
  StepRecord step();
  void save_on_error(const std::function<void()>& work);
  const CausalLm& teacher() const {
    if (parts_.other_teacher != nullptr) return parts_.other_teacher->model();
    return state_.teacher ? state_.teacher->model() : state_.model;
  }
  // Of a teacher's prompt and response together.
  std::int64_t most_positions() const {
    return std::min(state_.model.shape().max_positions, teacher().shape().max_positions);
  }
  void render_carried();
  PromptBatch next_prompts(std::size_t count, std::size_t drawn);
  void roll_out(StepRecord& record, StepTimes& times);
  void refill(StepRecord& record, StepTimes& times, GradeCounts& grades);
  RolledOut roll_out_together(const StepRecord& record, std::vector<OpenGroup> groups,
                              StepTimes& times, GradeCounts& grades);
  Rollouts roll_out_share(const StepRecord& record, std::span<const OpenGroup> groups,
                          StepTimes& times);
  ResponseBatch sample(const PromptBatch& prompts, StepSampling how);
  GradeCounts grade(StepRecord& record);
  void build_contexts(StepRecord& record);
  std::vector<std::string> ask_for_contexts(StepRecord& record);
  void check_lengths(const ResponseBatch& batch) const;
  void score_contexts(const PromptBatch& prompts, ResponseBatch& batch);
  void score_before(const PromptBatch& prompts, ResponseBatch& batch) const;
  void score_responses(
      const CausalLm& model, ResponseBatch& batch, TokenScores Response::*field,
      const std::function<const std::vector<TokenId>&(std::size_t)>& prompt_of) const;
  void set_group_advantages(const PromptBatch& prompts, ResponseBatch& batch) const;
  GateInput gate_statistic_of(const ResponseBatch& batch) const;
  void update_policy(StepRecord& record);
  std::string dump_culprit(const StepRecord& record, std::size_t number,
                           const std::string& problem);
  void warn_of_failed_grades(const ResponseBatch& batch);
  void give_up_without_grades(const GradeCounts& grades);
  void tell_of_gate(const StepRecord& record);
  void tell_of_step(const StepRecord& record);
  MetricSet metrics_of(const StepRecord& record);
  std::optional<EvaluationResult> evaluate_if_due();
  void evaluate_start();
  void begin_save();
  void finish_save();
  void save_last(const std::function<bool()>& stop);
  CheckpointKeeper::Writing writing() const;
  Diverged diverged(const NotFinite& error) const;

  TrainerParts parts_;
  const RunConfig& config_;
  TrainState& state_;
  Method method_;
  Schedule schedule_;
  GroupSampler sampler_;
  GradingStage grading_;
  ContextBuilder context_;
  Updater updater_;
  std::optional<double> peak_flops_;  // of the device, if known
  MemoryPeaks memory_;
  StepRow last_row_;
  CheckpointKeeper keeper_;
  std::int64_t ungraded_steps_ = 0;              // consecutive; a resumed run counts from 0
  std::optional<TeacherStates> teacher_states_;  // of this step, where another model distils
  bool cut_said_ = false;                        // the warning that solutions were cut was given
  AlikeGroups alike_;
  std::set<TokenId> bonus_ids_;      // of method.bonus.words
  bool evaluation_missing_ = false;  // of the last step at which one was due
};

}  // namespace antisd::inline trainer
