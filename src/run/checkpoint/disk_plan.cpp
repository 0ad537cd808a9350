#include "run/checkpoint/disk_plan.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <sys/statvfs.h>

#include "model/architecture.h"
#include "run/checkpoint/folders.h"
#include "run/run_files.h"

namespace antisd::inline run {
namespace {

namespace fs = std::filesystem;

std::string size_text(double bytes) {
  return bytes < (1 << 27) ? fmt::format("{:.2f} MiB", bytes / (1 << 20))
                           : fmt::format("{:.2f} GiB", bytes / (1 << 30));
}

fs::path nearest_existing(const fs::path& directory) {
  std::error_code error;
  fs::path path = fs::absolute(directory, error).lexically_normal();
  while (!fs::exists(path, error) && path.has_relative_path())
    path = path.parent_path();
  return path;
}

// How often the run is still to be saved.
std::int64_t saves_to_come(const RunConfig& config, std::int64_t step) {
  const std::int64_t steps = config.train.steps, every = config.checkpoint.every;
  if (steps <= step) return 0;
  if (every == 0) return 1;
  return steps / every - step / every + (steps % every != 0 ? 1 : 0);
}

}  // namespace

std::string DiskPlan::text() const {
  return fmt::format("{} checkpoint{} of {} to come: {}; {} has {} free", checkpoints,
                     checkpoints == 1 ? "" : "s", size_text(checkpoint_bytes), size_text(needed()),
                     folder, free ? size_text(*free) : "an unknown amount");
}

std::string DiskPlan::warning() const {
  return text() +
         ": free some space, lower checkpoint.keep, or choose another record.dir; a run whose last "
         "step cannot be saved fails";
}

DiskPlan plan_disk(const ModelShape& shape, const RunConfig& config, at::ScalarType dtype,
                   bool slow_teacher, std::int64_t step) {
  // Weights, moments, masters of 16-bit weights, and the average that a slow teacher is.
  const double element = dtype == at::kFloat ? 4 : 2, masters = dtype == at::kFloat ? 0 : 4;
  DiskPlan plan;
  for (const ParameterSpec& spec : parameter_specs(shape)) {
    if (shape.lora && !spec.is_adapter()) continue;  // the base is where it was
    const double bytes = element + (spec.trainable ? 8 + masters : 0) + (slow_teacher ? 4 : 0);
    plan.checkpoint_bytes += bytes * static_cast<double>(spec.count());
  }
  // Before one is pruned the next is whole.
  const CheckpointConfig& saved = config.checkpoint;
  const std::int64_t at_most = saved.keep + 1 + (saved.keep_best.empty() ? 0 : 1);
  const std::int64_t there =
      std::ssize(step_folders(fs::path(config.record.dir) / kCheckpointsFolder));
  plan.checkpoints =
      std::min(saves_to_come(config, step), std::max<std::int64_t>(1, at_most - there));
  const fs::path folder = nearest_existing(config.record.dir);
  plan.folder = folder.string();
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) == 0)
    plan.free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  return plan;
}

}  // namespace antisd::inline run
