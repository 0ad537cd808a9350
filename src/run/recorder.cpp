#include "run/recorder.h"

#include <cerrno>
#include <chrono>
#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>

#include "core/check.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/system_error.h"
#include "run/config_json.h"
#include "run/run_files.h"

namespace antisd::inline run {
namespace {

namespace fs = std::filesystem;

std::string time_text() {  // UTC, as ISO 8601
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

const fs::path& made(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw_cannot_write(directory, error.value());
  return directory;
}

// The runs that this directory has seen before, of an older run.json; it may be damaged.
Json earlier_runs(const fs::path& file) {
  try {
    if (!fs::exists(file)) return Json::array();
    Json last = parse_json(read_file(file), file.string());
    Json runs = last.value("earlier", Json::array());
    last.erase("earlier");
    runs.push_back(std::move(last));
    return runs;
  } catch (const std::exception&) {
    return Json::array();
  }
}

UniqueFd open_folder(const fs::path& directory) {
  UniqueFd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) throw_cannot_write(directory, errno);
  return folder;
}

// Whether the path still leads to the folder.
bool names(const fs::path& path, const UniqueFd& folder) {
  struct stat named {
  }, open{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(folder.get(), &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

// The settings of the steps before stay beside those of now. Where a file of that name is there
// already, a start from the same step came to nothing: the file holds the older ones.
void keep_settings(const fs::path& directory, const std::string& now, std::int64_t step) {
  const fs::path file = directory / kConfigFile,
                 kept = directory / fmt::format("config.{}.toml", step_name(step));
  if (!fs::exists(file) || fs::exists(kept)) return;
  const std::string before = read_file(file);
  if (before != now) write_file_atomically(kept, before);
}

}  // namespace

void check_loggers(const RecordConfig& config) {
  if (config.logs_to("wandb")) check_wandb();
}

Recorder::Recorder(const RecordConfig& config, Console& console)
    : config_(config),
      console_(console),
      directory_(made(config.dir)),
      folder_(open_folder(directory_)),
      log_(directory_ / kLogFile) {}

Recorder::Recorder(const RecordConfig& config, Console& console, int rank)
    : config_(config), console_(console), directory_(config.dir) {
  ANTISD_CHECK_LT(0, rank);
}

void Recorder::note(std::string_view text) {
  const Lock lock(mutex_);
  if (!log_) return;
  try {
    log_->append(fmt::format("{} {}\n", time_text(), text));
  } catch (const RunError&) {
    // The console has it; a warning about the log would be written to the log.
  }
}

void Recorder::info(std::string_view text) {
  const Lock lock(mutex_);
  if (!writes()) return;
  console_.info(text);
  note(text);
}

void Recorder::warn(std::string_view text) {
  const Lock lock(mutex_);
  if (!writes()) return;
  console_.warn(text);
  note(fmt::format("warning: {}", text));
}

void Recorder::attempt(const std::string& what, const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    warn(fmt::format("{} was not written: {}. The run goes on", what, error.message()));
  }
}

void Recorder::open(const RunConfig& config, const RunInfo& info, std::int64_t step) {
  if (!writes()) return;
  run_ = {{"version", info.version},
          {"revision", info.revision},
          {"command_line", info.command_line},
          {"device", info.device},
          {"dtype", info.dtype},
          {"seed", config.train.seed},
          {"method", info.method},
          {"started", time_text()},
          {"first_step", step},
          {"ended", nullptr},
          {"last_step", nullptr},
          {"exit_reason", nullptr},
          {"earlier", earlier_runs(directory_ / kRunFile)}};
  settings_ = config.options().to_toml(false);
  attempt("config.toml", [&] {
    if (step > 0) keep_settings(directory_, settings_, step);
    write_file_atomically(directory_ / kConfigFile, settings_);
  });
  attempt(kRunFile, [&] { write_run_json(); });
  const MetricsCut cut = cut_metrics(directory_ / kMetricsFile, step);
  if (cut.later + cut.broken > 0) {
    this->info(fmt::format("metrics.jsonl: {} rows of steps after {} cut off, {} broken lines",
                           cut.later, step, cut.broken));
  }
  metrics_.emplace(directory_ / kMetricsFile);
  start_loggers(config, step);
}

void Recorder::start_loggers(const RunConfig& config, std::int64_t step) {
  std::string where = fmt::format("metrics: {}", (directory_ / kMetricsFile).string());
  if (config_.logs_to("tensorboard")) {
    tensorboard_.emplace(directory_, step + 1);
    where += fmt::format(", `tensorboard --logdir {}`", directory_.string());
  }
  if (config_.logs_to("wandb")) where += ", wandb";
  info(where);
  if (!config_.logs_to("wandb")) return;
  wandb_.emplace(WandbStart{.config = config_.wandb,
                            .directory = directory_,
                            .step = step,
                            .settings = config_json(config)},
                 WandbVoice{.info = [this](const std::string& text) { info(text); },
                            .warn = [this](const std::string& text) { warn(text); }});
}

// Rows that go into a removed file are lost without an error.
void Recorder::notice_removal() {
  if (!metrics_ || is_gone_ || metrics_->is_there()) return;
  is_gone_ = true;
  warn(fmt::format(
      "{} was removed while the run goes on: what it held is lost, and so are rows "
      "until the next save, which makes the directory anew. The weights are in memory",
      names(directory_, folder_) ? (directory_ / kMetricsFile).string() : directory_.string()));
}

void Recorder::restore_directory() {
  const Lock lock(mutex_);
  if (!writes()) return;
  notice_removal();
  if (!is_gone_) return;
  if (!names(directory_, folder_)) {  // its lock went with it, and somebody may have begun there
    try {
      relock_.emplace(directory_);
    } catch (const InputError& error) {
      throw RunError(error.problem(), error.context());
    }
    folder_ = open_folder(directory_);
  }
  if (!log_->is_there()) log_.emplace(directory_ / kLogFile);
  write_file_atomically(directory_ / kConfigFile, settings_);
  write_run_json();
  metrics_.emplace(directory_ / kMetricsFile);
  if (tensorboard_ && !fs::exists(tensorboard_->path())) tensorboard_.emplace(directory_, 0);
  is_gone_ = false;
  info(fmt::format("{} was made anew", directory_.string()));
}

void Recorder::metrics(std::int64_t step, const MetricSet& metrics) {
  const Lock lock(mutex_);
  if (!writes()) return;
  notice_removal();
  attempt(fmt::format("the row of step {} in metrics.jsonl", step),
          [&] { metrics_->write(step, metrics); });
  if (tensorboard_)
    attempt(fmt::format("step {} for TensorBoard", step),
            [&] { tensorboard_->write(step, metrics); });
  if (wandb_) wandb_->log(step, metrics);
}

void Recorder::amend(std::int64_t step, const MetricSet& more) {
  const Lock lock(mutex_);
  if (!writes()) return;
  attempt(fmt::format("the row of step {} in metrics.jsonl", step), [&] {
    amend_metrics(directory_ / kMetricsFile, step, more);
    metrics_.emplace(directory_ / kMetricsFile);
  });
  if (tensorboard_)
    attempt(fmt::format("step {} for TensorBoard", step), [&] { tensorboard_->write(step, more); });
  if (wandb_) wandb_->amend(step, more);
}

std::optional<MetricSet> Recorder::find_metrics(std::int64_t step) const {
  return antisd::find_metrics(directory_ / kMetricsFile, step);
}

void Recorder::rollouts(std::int64_t step, std::size_t count,
                        const std::function<Json(std::size_t)>& row) {
  const Lock lock(mutex_);
  if (!writes() || config_.rollouts_every == 0 || step % config_.rollouts_every != 0) return;
  attempt(fmt::format("the rollouts of step {}", step), [&] {
    const fs::path path = directory_ / rollouts_file(step);
    made(path.parent_path());
    AtomicFile file(path);
    for (std::size_t r = 0; r < count; ++r)
      file.write(to_json_line(row(r)) + "\n");
    file.commit();
  });
}

fs::path Recorder::failure(std::int64_t step, const Json& row) {
  const Lock lock(mutex_);
  const fs::path path = directory_ / failure_file(step);
  attempt("what stopped the step", [&] {
    made(path.parent_path());
    write_file_atomically(path, to_json_line(row) + "\n");
  });
  return path;
}

void Recorder::write_run_json() {
  write_file_atomically(directory_ / kRunFile,
                        run_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void Recorder::finish(const std::string& reason, std::int64_t step) {
  const Lock lock(mutex_);
  if (!writes()) return;
  note(reason);
  // A start that came to nothing leaves what an earlier one said of itself.
  std::error_code ignored;
  if (run_.is_null() && fs::exists(directory_ / kRunFile, ignored)) return;
  run_["ended"] = time_text();
  run_["last_step"] = step;
  run_["exit_reason"] = reason;
  attempt(kRunFile, [&] { write_run_json(); });
  if (wandb_) wandb_->finish(reason, step);
}

}  // namespace antisd::inline run
