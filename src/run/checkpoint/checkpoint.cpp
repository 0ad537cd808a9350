#include "run/checkpoint/checkpoint.h"

#include <exception>

#include "core/check.h"
#include "core/error.h"
#include "dist/agreement.h"
#include "io/atomic_file.h"
#include "io/system_error.h"
#include "model/not_finite.h"
#include "model/weights.h"
#include "run/checkpoint/folders.h"
#include "run/checkpoint/manifest.h"
#include "run/checkpoint/optimizer_file.h"

namespace antisd::inline run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kCheck = "check";
constexpr const char* kModel = "model";
constexpr const char* kAdapter = "adapter";
constexpr const char* kGather = "save into ";  // and the folder

// What is not finite in what this rank holds; empty: all is.
std::string not_finite_text(const CheckpointParts& parts) {
  std::string text;
  const auto check = [&](const at::Tensor& tensor, const char* what, const std::string& name) {
    if (!text.empty() || !tensor.defined() || all_finite(tensor)) return;
    text = fmt::format("{} of {} holds NaN or infinity", what, name);
  };
  for (const Parameter& parameter : parts.model.parameters()) {
    check(parts.optimizer.own_values(parameter), "the weight", parameter.name());
    check(parameter.master, "the master weight", parameter.name());
    check(parameter.first_moment, "the first moment", parameter.name());
    check(parameter.second_moment, "the second moment", parameter.name());
  }
  if (parts.teacher == nullptr) return text;
  for (const Parameter& parameter : parts.teacher->parameters())
    check(parameter.value, "the teacher's weight", parameter.name());
  return text;
}

// The other ranks begin to do what help_save_checkpoint() does for `what`.
void call_ranks(const CheckpointParts& parts, const std::string& what) {
  if (parts.ranks == nullptr || parts.ranks->size() == 1) return;
  parts.call_ranks();
  first_says(*parts.ranks, what);
}

// RunError on rank 0, also for what another rank could not write.
void save_optimizer_together(const CheckpointParts& parts, const fs::path& folder) {
  OptimizerSaving saving{.steps = parts.optimizer.steps(), .shard_bytes = parts.shard_bytes};
  if (parts.ranks != nullptr) {
    saving.rank = parts.ranks->rank();
    saving.ranks = parts.ranks->size();
  }
  std::exception_ptr failure;
  std::string problem;
  try {
    save_optimizer(parts.model.parameters(), parts.optimizer, folder, saving);
  } catch (const RankLost&) {
    throw;
  } catch (const Error& error) {
    failure = std::current_exception();
    problem = error.message();
  }
  const std::vector<std::string> all =
      parts.ranks != nullptr ? parts.ranks->gather(problem) : std::vector{problem};
  if (saving.rank > 0) return;  // rank 0 tells
  if (failure) std::rethrow_exception(failure);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (!all[r].empty()) throw RunError(fmt::format("rank {}: {}", r, all[r]));
}

void save_weights(const CheckpointParts& parts, const CausalLm& model, const fs::path& folder) {
  if (!model.shape().lora) return save_model(model, parts.origin, folder, model.dtype());
  ANTISD_CHECK(parts.base != nullptr);
  save_adapter(model, parts.base->path, folder);
}

// InputError unless the checkpoint holds what the run trains.
void check_kind(const fs::path& checkpoint, const CausalLm& model) {
  const fs::path adapter = checkpoint / kAdapter;
  const bool has_adapter = is_adapter_directory(adapter);
  if (has_adapter == model.shape().lora.has_value()) return;
  if (has_adapter) {
    throw InputError(
        "the checkpoint holds adapters, the run trains a whole model",
        {.where = checkpoint.string(),
         .remedy = fmt::format("set [model.lora] as it was, or merge it: `antisd merge "
                               "{} -o DIR` and model.path = \"DIR\"",
                               adapter.string())});
  }
  throw InputError("the checkpoint holds a whole model, the run trains adapters",
                   {.where = checkpoint.string(),
                    .remedy = fmt::format("set model.path = \"{}\" and leave out train.init_from",
                                          (checkpoint / kModel).string())});
}

void check_adapter(const fs::path& checkpoint, const ModelShape& shape, const Json& state,
                   const BaseModel& base) {
  const LoraShape saved = read_adapter_config(checkpoint / kAdapter).lora;
  if (saved != *shape.lora) {
    throw InputError(fmt::format("the checkpoint's adapters have {}; the run asks for {}",
                                 saved.text(), shape.lora->text()),
                     {.where = checkpoint.string(), .remedy = "set [model.lora] as it was"});
  }
  const Json trained = state.value("base", Json::object());
  if (trained.value("fingerprint", std::string()) == base.fingerprint) return;
  throw InputError(
      fmt::format("the adapters were trained on another base model than {}", base.path.string()),
      {.where = checkpoint.string(),
       .remedy = fmt::format("set model.path to the one it had: {}",
                             trained.value("path", std::string("not known")))});
}

}  // namespace

fs::path save_checkpoint(const fs::path& checkpoints, std::int64_t step,
                         const CheckpointParts& parts, const Json& state) {
  const fs::path target = checkpoints / step_name(step);
  call_ranks(parts, kCheck);
  const std::string own = not_finite_text(parts);
  for (const std::string& problem :
       parts.ranks != nullptr ? parts.ranks->gather(own) : std::vector{own})
    if (!problem.empty()) throw NotFinite(problem);
  try {
    fs::create_directories(checkpoints);
    remove_unfinished(checkpoints);  // left by a killed save; they would fill the disk
    UnfinishedFolder folder(target);
    call_ranks(parts, kModel);
    const bool adapted = parts.model.shape().lora.has_value();
    parts.model.make_passes(1, [&] {
      save_weights(parts, parts.model, folder.path() / (adapted ? kAdapter : kModel));
    });
    if (parts.teacher != nullptr) save_weights(parts, *parts.teacher, folder.path() / "teacher");
    call_ranks(parts, kGather + folder.path().string());
    save_optimizer_together(parts, folder.path());
    Json saved = state;
    if (parts.base != nullptr) {
      saved["base"] = {{"path", parts.base->path.string()},
                       {"fingerprint", parts.base->fingerprint}};
    }
    write_file_atomically(folder.path() / "state.json",
                          saved.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    if (parts.write_more) parts.write_more(folder.path());
    write_manifest(folder.path(), step);
    folder.rename_to_target();
  } catch (const fs::filesystem_error& error) {
    throw_cannot_write(error.path1().empty() ? target : error.path1(), error.code().value());
  } catch (const InputError& error) {
    // Our own files could not be read back, or the origin is gone: not an input error.
    throw RunError(error.problem(), error.context());
  }
  return target;
}

void help_save_checkpoint(const CheckpointParts& parts) {
  const std::string what = first_says(*parts.ranks, "");
  if (what == kCheck) {
    parts.ranks->gather(not_finite_text(parts));
  } else if (what == kModel) {
    parts.model.make_passes(1, [] {});
  } else {
    save_optimizer_together(parts, what.substr(std::string(kGather).size()));
  }
}

Json load_checkpoint(const fs::path& checkpoint, CausalLm& model, AdamW& optimizer,
                     const BaseModel* base) {
  check_kind(checkpoint, model);
  const fs::path file = checkpoint / "state.json";
  Json state = parse_json(read_file(file), file.string());
  if (model.shape().lora) {
    ANTISD_CHECK(base != nullptr);
    check_adapter(checkpoint, model.shape(), state, *base);
  }
  load_optimizer(model, optimizer, checkpoint,
                 checkpoint / (model.shape().lora ? kAdapter : kModel));
  return state;
}

fs::path model_files(const fs::path& checkpoint) {
  const fs::path adapter = checkpoint / kAdapter;
  return is_adapter_directory(adapter) ? base_directory(adapter) : checkpoint / kModel;
}

FoundCheckpoint verify_checkpoint(const fs::path& checkpoint) {
  // "runs/a/checkpoints/step-000010/" has an empty last component.
  const fs::path folder = checkpoint.has_filename() ? checkpoint : checkpoint.parent_path();
  const std::optional<std::int64_t> step = step_of_name(folder.filename().string());
  if (!step) {
    throw InputError("not a checkpoint: its name is not step-NUMBER",
                     {.where = checkpoint.string(),
                      .remedy = "name a folder such as runs/a/checkpoints/step-000010"});
  }
  verify_manifest(folder, *step);
  return {folder, *step};
}

NewestCheckpoint find_newest_whole(const fs::path& checkpoints) {
  // An unreadable folder is not an empty one: the run would start again from the beginning.
  std::error_code error;
  const fs::directory_iterator readable(checkpoints, error);
  if (error && error != std::errc::no_such_file_or_directory)
    throw_cannot_read(checkpoints, error.value());
  NewestCheckpoint newest;
  for (const fs::path& path : unfinished_folders(checkpoints))
    newest.skipped.push_back({path, "a save that did not finish"});
  for (const StepFolder& folder : step_folders(checkpoints)) {
    try {
      newest.found = verify_checkpoint(folder.path);
      return newest;
    } catch (const Error& error) {
      newest.skipped.push_back({folder.path, error.message()});
    }
  }
  return newest;
}

std::vector<fs::path> prune_checkpoints(const fs::path& checkpoints, const Retention& retention) {
  std::vector<fs::path> removed = remove_unfinished(checkpoints);
  std::int64_t kept = 0;
  for (const StepFolder& folder : step_folders(checkpoints)) {
    if (folder.step > retention.newest || kept++ < retention.keep ||
        folder.step == retention.best_step || folder.step == retention.good_step)
      continue;
    if (remove_folder(folder.path)) removed.push_back(folder.path);
  }
  return removed;
}

}  // namespace antisd::inline run
