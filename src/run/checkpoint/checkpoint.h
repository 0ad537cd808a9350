// Checkpoints of a run: checkpoints/step-000010/ with model/ (a Hugging Face directory),
// optimizer.safetensors, state.json and MANIFEST.json, and teacher/ if the teacher has its own
// weights. Of a model with adapters only these are saved, into adapter/ (and teacher/), as PEFT
// writes them; state.json names the base by path and fingerprint. A folder of that name is complete
// or absent: it is filled under another name, synced, and renamed.
//
//   save_checkpoint(run / "checkpoints", 10, {model, optimizer, origin}, saved_state);
//   prune_checkpoints(run / "checkpoints", {.keep = 2, .best_step = best_step});
//
//   const NewestCheckpoint newest = find_newest_whole(run / "checkpoints");
//   for (const SkippedCheckpoint& skipped : newest.skipped)
//     console.warn(skipped.path.string() + ": " + skipped.reason);
//   if (newest.found) saved_state = load_checkpoint(newest.found->path, model, optimizer);
//
// Only one process at a time writes below a folder of checkpoints (the run's lock ensures that).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "model/adapter_files.h"
#include "optim/adamw.h"

namespace antisd::inline run {

struct CheckpointParts {
  const CausalLm& model;
  const AdamW& optimizer;
  std::filesystem::path origin;       // source of the config and tokenizer files in model/
  const CausalLm* teacher = nullptr;  // into teacher/, in its own precision
  const BaseModel* base = nullptr;    // below adapters
  std::function<void(const std::filesystem::path& folder)> write_more = {};  // further files
  // With several ranks: how rank 0 reaches the others, and what makes each of them call
  // help_save_checkpoint() once.
  Communicator* ranks = nullptr;
  std::function<void()> call_ranks = {};
  std::int64_t shard_bytes = 5'000'000'000;  // of the optimizer's files
};

// Weights are saved in the model's compute precision, masters of higher precision beside the
// moments. load_checkpoint returns `state` unchanged. Returns the folder; an older one of the same
// step is replaced. RunError if writing fails: all earlier checkpoints are then still complete,
// nothing of the new one is left, and the run may continue. NotFinite, before anything is written,
// if a weight, master or moment is not finite.
//
// The files know no ranks: the same state gives the same bytes. With several ranks, rank 0 saves
// and calls the others when it needs what they hold.
std::filesystem::path save_checkpoint(const std::filesystem::path& checkpoints, std::int64_t step,
                                      const CheckpointParts& parts, const Json& state);
void help_save_checkpoint(const CheckpointParts& parts);

// Restores weights, moments and step count bit for bit, also on another kind of device or another
// number of ranks, which all call it; returns the state. InputError for a checkpoint of another
// model, of other adapters, or on another base.
Json load_checkpoint(const std::filesystem::path& checkpoint, CausalLm& model, AdamW& optimizer,
                     const BaseModel* base = nullptr);

// The directory with config and tokenizer of a checkpoint's model: its own, or the base's.
std::filesystem::path model_files(const std::filesystem::path& checkpoint);

struct FoundCheckpoint {
  std::filesystem::path path;
  std::int64_t step;
};

struct SkippedCheckpoint {
  std::filesystem::path path;
  std::string reason;
};

struct NewestCheckpoint {
  std::optional<FoundCheckpoint> found;
  std::vector<SkippedCheckpoint> skipped;  // newer ones that are incomplete, and unfinished ones
};

// By step, not by time. Reads every byte of the returned one. A missing folder has none; an
// unreadable one is an InputError.
NewestCheckpoint find_newest_whole(const std::filesystem::path& checkpoints);

// InputError if the folder is not a complete checkpoint. Used for train.init_from.
FoundCheckpoint verify_checkpoint(const std::filesystem::path& checkpoint);

struct Retention {
  std::int64_t keep = 2;                  // number of newest ones to keep
  std::optional<std::int64_t> best_step;  // never pruned
  std::optional<std::int64_t> good_step;  // nor this one: the newest whose weights proved finite
  // The step saved last. Folders of later steps existed before it: the run resumed before them
  // because they are damaged. They do not count among the newest, and stay.
  std::int64_t newest = std::numeric_limits<std::int64_t>::max();
};

// Call it after a save. Removes older checkpoints and leftovers of killed saves, as far as
// possible. Returns what was removed.
std::vector<std::filesystem::path> prune_checkpoints(const std::filesystem::path& checkpoints,
                                                     const Retention& retention);

}  // namespace antisd::inline run
