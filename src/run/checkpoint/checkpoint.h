// Checkpoints of a run: checkpoints/step-000010/ with model/ (a Hugging Face directory),
// optimizer.safetensors, state.json and MANIFEST.json, and teacher/ where it has weights of its
// own. A folder of that name is whole or absent: it is filled under another name, synced, and
// renamed.
//
//   save_checkpoint(run / "checkpoints", 10, {model, optimizer, origin}, saved_state);
//   prune_checkpoints(run / "checkpoints", {.keep = 2, .best_step = best_step});
//
//   const NewestCheckpoint newest = find_newest_whole(run / "checkpoints");
//   for (const SkippedCheckpoint& skipped : newest.skipped)
//     console.warn(skipped.path.string() + ": " + skipped.reason);
//   if (newest.found) saved_state = load_checkpoint(newest.found->path, model, optimizer);
//
// One process at a time writes below a folder of checkpoints (the run's lock sees to that).
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "optim/adamw.h"

namespace antisd::inline run {

struct CheckpointParts {
  const CausalLm& model;
  const AdamW& optimizer;
  std::filesystem::path origin;       // whose config and tokenizer files go into model/
  const CausalLm* teacher = nullptr;  // into teacher/, in its own precision
};

// Weights are saved in the precision the model computes in, masters of more precision beside the
// moments. `state` comes back from load_checkpoint as it is. Returns the folder; an older one of
// the same step is replaced. RunError for anything that the disk refuses: every checkpoint that was
// there is still whole then, nothing of the new one is left, and the run may go on. NotFinite,
// before anything is written, where a weight, master or moment is not finite.
std::filesystem::path save_checkpoint(const std::filesystem::path& checkpoints, std::int64_t step,
                                      const CheckpointParts& parts, const Json& state);

// Weights, moments and step count bit for bit as they were saved, also on another kind of device;
// returns the state. InputError for a checkpoint of another model.
Json load_checkpoint(const std::filesystem::path& checkpoint, CausalLm& model, AdamW& optimizer);

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
  std::vector<SkippedCheckpoint> skipped;  // newer ones that are not whole, and unfinished ones
};

// By step, not by time. Reads every byte of the one it returns. A missing folder has none; one that
// cannot be read is an InputError.
NewestCheckpoint find_newest_whole(const std::filesystem::path& checkpoints);

// InputError where the folder is no whole checkpoint. For train.init_from, which names one.
FoundCheckpoint verify_checkpoint(const std::filesystem::path& checkpoint);

struct Retention {
  std::int64_t keep = 2;                  // the newest so many
  std::optional<std::int64_t> best_step;  // never pruned
  std::optional<std::int64_t> good_step;  // nor this one: the newest whose weights proved sound
  // The step saved last. Folders of later steps were there before it, so a run went on from before
  // them because they are damaged: they do not count among the newest, and stay.
  std::int64_t newest = std::numeric_limits<std::int64_t>::max();
};

// Call after a save. Removes older checkpoints and what killed saves left behind; what cannot be
// removed stays. Returns what went.
std::vector<std::filesystem::path> prune_checkpoints(const std::filesystem::path& checkpoints,
                                                     const Retention& retention);

}  // namespace antisd::inline run
