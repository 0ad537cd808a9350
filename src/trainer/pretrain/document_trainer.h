// The training loop for documents. With several ranks all have the same documents, and the passes
// over the model are dealt out; rank 0 writes.
//
//   DocumentTrainer trainer({config, state, *documents, tokenizer, recorder, console});
//   const bool whole = trainer.run([] { return StopSignals::received(); });
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "data/documents.h"
#include "inference/rollout_engine.h"
#include "model/not_finite.h"
#include "optim/schedule.h"
#include "reward/grader.h"
#include "run/checkpoint/checkpoint_keeper.h"
#include "run/metrics/console.h"
#include "trainer/gradient_pass.h"
#include "trainer/pretrain/document_objective.h"

namespace antisd::inline trainer {

// Everything that a resumed run depends on. Documents are a function of the step, so there is no
// cursor.
struct DocumentState {
  DocumentState(CausalLm policy, const AdamWOptions& adamw, Communicator& ranks,
                ShardOptions shard = {})
      : model(std::move(policy)), optimizer(model, adamw, ranks, shard) {}
  DocumentState(const DocumentState&) = delete;  // the optimizer points at the model
  DocumentState& operator=(const DocumentState&) = delete;

  std::int64_t step = 0;
  std::string documents;          // Documents::fingerprint()
  std::optional<BaseModel> base;  // of a model with adapters
  std::optional<BestCheckpoint> best;
  CausalLm model;
  AdamW optimizer;
};

Json to_json(const DocumentState& state);
// InputError for a checkpoint of another model or other documents.
void resume(DocumentState& state, const std::filesystem::path& checkpoint);

// Borrowed, except the vectors; they must outlive the trainer.
struct DocumentTrainerParts {
  const RunConfig& config;
  DocumentState& state;
  Documents& documents;
  const Tokenizer& tokenizer;
  Recorder& recorder;
  Console& console;
  Grader* grader = nullptr;                // for the samples of a built-in task
  std::vector<TrainingDocument> held_out;  // whose loss is measured
  std::vector<TrainingDocument> prompts;   // to sample responses to
  std::vector<TokenId> stop_ids;
  std::filesystem::path origin;  // source of the config and tokenizer files of checkpoints
  std::size_t kept_layers = 0;   // MemoryPlan::kept_layers
};

class DocumentTrainer {
 public:
  explicit DocumentTrainer(DocumentTrainerParts parts);

  // Trains up to train.steps, or until `stop` returns true between two steps; then saves, or throws
  // RunError, "not saved". False if it was stopped. RunError if a gradient is not finite: the
  // weights are then those of the step before, the document is in failed/, and nothing is saved.
  bool run(const std::function<bool()>& stop);

 private:
  void checked_step(std::span<const TrainingDocument> documents);
  void step(std::span<const TrainingDocument> documents);
  void evaluate(MetricSet& metrics);
  void sample(MetricSet& metrics);
  std::vector<std::string> sample_texts();
  CheckpointParts checkpoint(Communicator& ranks) const;
  CheckpointKeeper::Writing writing() const;
  void save();
  void save_last(const std::function<bool()>& stop);
  RunError diverged(const NotFinite& error) const;
  UpdateReport update(std::span<const TrainingDocument> documents, const PassBatch& batch,
                      MeanOver mean, double lr, DocumentObjective& objective);
  GradientPassOptions pass_options() const;

  DocumentTrainerParts parts_;
  const RunConfig& config_;
  DocumentState& state_;
  Schedule schedule_;
  RolloutEngine engine_;
  StepRow last_row_;
  std::optional<double> peak_flops_;  // of the device, if known
  CheckpointKeeper keeper_;
};

}  // namespace antisd::inline trainer
