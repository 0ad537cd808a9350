#include "eval/results/run_results.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/run_config.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "run/run_files.h"

namespace antisd::inline eval {
namespace {

namespace fs = std::filesystem;

std::string name_of(const fs::path& directory) {
  const fs::path path = fs::absolute(directory).lexically_normal();
  return (path.has_filename() ? path.filename() : path.parent_path().filename()).string();
}

void read_config(const fs::path& directory, RunResults& run) {
  const fs::path file = directory / kConfigFile;
  if (!fs::exists(file)) return;
  RunConfig config;
  config.options().load_toml(file);
  run.method = config.method.name;
  run.model = config.model.path;
  run.seed = std::to_string(config.train.seed);
  run.init_from = config.train.init_from;
}

void read_method(const fs::path& directory, RunResults& run) {
  const fs::path file = directory / kRunFile;
  if (!fs::exists(file)) return;
  const Json json = parse_json(read_file(file), file.string());
  if (json.is_object() && json.contains("method") && json["method"].is_string())
    run.method = json["method"];
}

void attempt(RunResults& run, const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    run.notes.push_back(error.message());
  }
}

}  // namespace

RunResults read_run_results(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    throw InputError("there is no run directory",
                     {.where = directory.string(), .remedy = "give the directory of a run"});
  }
  RunResults run;
  run.name = name_of(directory);
  attempt(run, [&] { read_config(directory, run); });
  attempt(run, [&] { read_method(directory, run); });
  for (const fs::directory_entry& entry :
       fs::directory_iterator(directory / kEvaluationsFolder, error)) {
    const std::optional<std::int64_t> step = step_of_name(entry.path().filename().string());
    const fs::path file = entry.path() / kSummaryFile;
    if (!step || !fs::exists(file, error)) continue;  // none, or still in progress
    attempt(run, [&] { run.evaluations.push_back({*step, read_summary(file)}); });
  }
  std::sort(run.evaluations.begin(), run.evaluations.end(),
            [](const auto& a, const auto& b) { return a.step < b.step; });
  const auto same = [](const auto& a, const auto& b) { return a.step == b.step; };
  run.evaluations.erase(std::unique(run.evaluations.begin(), run.evaluations.end(), same),
                        run.evaluations.end());
  return run;
}

}  // namespace antisd::inline eval
