// Everything that a resumed run depends on: exactly the content of a checkpoint.
//
//   TrainState state(std::move(model), stream, method.gate, adamw_options(config.optim),
//                    ranks);
//   save_checkpoint(folder, state.step, parts_of(state, origin), to_json(state));
//   resume(state, checkpoint);                 // the same run, bit for bit
//   start_from(state, other_runs_checkpoint);  // another run's weights, optimizer and cursor
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "algo/gate.h"
#include "algo/moments.h"
#include "data/prompt_stream.h"
#include "io/json.h"
#include "optim/adamw.h"
#include "run/checkpoint/checkpoint.h"
#include "run/checkpoint/checkpoint_keeper.h"
#include "trainer/open_groups.h"
#include "trainer/slow_teacher.h"

namespace antisd::inline trainer {

struct TrainState {
  TrainState(CausalLm policy, PromptStream stream, const GateRules& gate_rules,
             const AdamWOptions& adamw, Communicator& ranks, ShardOptions shard = {})
      : prompts(std::move(stream)),
        gate(gate_rules),
        model(std::move(policy)),
        optimizer(model, adamw, ranks, shard) {}
  TrainState(const TrainState&) = delete;  // the optimizer points at the model
  TrainState& operator=(const TrainState&) = delete;

  std::int64_t step = 0;          // steps that this run has done
  std::int64_t steps_before = 0;  // by the runs that it was started from
  std::int64_t skipped = 0;       // steps without any graded response
  PromptStream prompts;
  EntropyGate gate;
  Moments warmup_u;                        // u over the gate's warm-up steps
  std::string reference;                   // model directory of the frozen reference
  std::optional<BaseModel> base;           // of a model with adapters
  std::optional<BaseModel> other_teacher;  // of method.teacher.path; its weights are not saved
  std::optional<BestCheckpoint> best;
  std::vector<OpenGroup> carried;  // into the next step, see rollout.partial
  CausalLm model;
  AdamW optimizer;
  std::optional<SlowTeacher> teacher;  // for methods whose teacher follows the weights

  // The key of random numbers: a run that was started from another draws new ones.
  std::uint32_t random_step() const { return static_cast<std::uint32_t>(steps_before + step); }
};

// Weights and optimizer, which a checkpoint keeps in their own files.
CheckpointParts parts_of(const TrainState& state, std::filesystem::path origin);
// All the rest.
Json to_json(const TrainState& state);

// Continues the checkpoint's own run. InputError for a checkpoint of another model, teacher, data
// set, seed or gate, or with a foreign state.json; the state is then unusable.
void resume(TrainState& state, const std::filesystem::path& checkpoint);

// Continual training: takes weights, optimizer, data cursor and reference of another run. Steps
// count from 0 again, the gate warms up again, and a slow teacher starts with the weights.
// Responses that the other run had begun are its own.
void start_from(TrainState& state, const std::filesystem::path& checkpoint);

Json to_json(const GateState& gate);
Json to_json(const Moments& moments);
GateState gate_state_from(const Json& json);  // InputError
Moments moments_from(const Json& json);

}  // namespace antisd::inline trainer
