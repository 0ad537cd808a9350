#include "report/run_reader.h"

#include <cmath>

#include <fmt/format.h>

#include "core/error.h"
#include "report/evaluation_json.h"
#include "run/run_files.h"

namespace antisd::inline report {
namespace {

constexpr std::size_t kMaxWarnings = 100;  // different ones
constexpr std::size_t kMaxGateEvents = 400;
constexpr std::size_t kMaxFolderEntries = 10'000;
constexpr std::size_t kMaxWarningBytes = 1'000;
constexpr std::int64_t kMaxSmallFile = 4 << 20;

// Reads `name` if it changed since `seen`; false if there is nothing new.
bool read_changed(const Folder& folder, const std::string& name, FileStamp& seen,
                  std::string& text) {
  const std::optional<OpenFile> file = folder.open(name);
  if (!file) return false;
  const FileStamp stamp = file->stamp();
  if (stamp == seen) return false;
  seen = stamp;
  text = stamp.size <= kMaxSmallFile ? file->read(0, stamp.size) : "";
  return true;
}

}  // namespace

RunReader::RunReader(std::string name, Folder folder)
    : name_(std::move(name)), folder_(std::move(folder)) {}

RunReader::Change RunReader::refresh(std::int64_t max_bytes) {
  Change change;
  const std::int64_t broken_before = broken_rows_;
  change.more = rows_.read(
      folder_, max_bytes,
      [&] {
        table_.clear();
        broken_rows_ = 0;
      },
      [&](std::string_view line) {
        if (!line.empty() && line != "\r" && !table_.add(line)) ++broken_rows_;
      });
  change.first_step = table_.take_first_change();
  const std::size_t events_before = gate_events_.size();
  if (change.first_step >= 0) find_gate_events();
  std::int64_t warned = 0;
  for (const RunWarning& warning : warnings_)
    warned -= warning.count;
  const bool more_log = log_.read(
      folder_, max_bytes, [&] { warnings_.clear(); },
      [&](std::string_view line) { take_log_line(line); });
  for (const RunWarning& warning : warnings_)
    warned += warning.count;
  change.more = change.more || more_log;
  const bool config_changed = read_config();
  const bool run_changed = read_run_json();
  const bool evaluations_changed = read_evaluations();
  const bool dumps_changed = read_dump_names();
  change.facts = config_changed || run_changed || evaluations_changed || dumps_changed ||
                 warned != 0 || broken_before != broken_rows_ ||
                 events_before != gate_events_.size();
  return change;
}

bool RunReader::read_config() {
  std::string text;
  if (!read_changed(folder_, kConfigFile, config_stamp_, text)) return false;
  problems_.erase(kConfigFile);
  try {
    config_ = flatten_toml(text, kConfigFile);
  } catch (const InputError& error) {
    config_.clear();
    problems_[kConfigFile] = error.message();
  }
  return true;
}

bool RunReader::read_run_json() {
  std::string text;
  if (!read_changed(folder_, kRunFile, run_stamp_, text)) return false;
  problems_.erase(kRunFile);
  run_ = Json::object();
  try {
    const Json file = parse_json(text, kRunFile);
    if (!file.is_object()) throw InputError("no JSON object", {.where = kRunFile});
    for (const char* key : {"version", "revision", "device", "dtype", "seed", "method", "started",
                            "ended", "last_step", "exit_reason"}) {
      const auto found = file.find(key);
      if (found != file.end() && found->is_primitive()) run_[key] = *found;
    }
    const auto earlier = file.find("earlier");
    if (earlier != file.end() && earlier->is_array()) run_["restarts"] = earlier->size();
  } catch (const InputError& error) {
    problems_[kRunFile] = error.message();
  }
  return true;
}

bool RunReader::read_evaluations() {
  bool changed = false;
  std::map<std::int64_t, FileStamp> stamps;
  for (const Folder::Entry& entry : folder_.list(kEvaluationsFolder, kMaxFolderEntries)) {
    const std::int64_t step = step_of_name(entry.name).value_or(-1);
    if (!entry.is_folder || step < 0) continue;
    const std::string name = fmt::format("{}/{}", evaluation_folder(step), kSummaryFile);
    FileStamp stamp = evaluation_stamps_.contains(step) ? evaluation_stamps_[step] : FileStamp();
    std::string text;
    const bool is_new = read_changed(folder_, name, stamp, text);
    if (stamp.size < 0) continue;  // evaluation not finished
    stamps[step] = stamp;
    if (!is_new) continue;
    changed = true;
    problems_.erase(name);
    try {
      evaluations_[step] = evaluation_json(parse_json(text, name));
    } catch (const InputError& error) {
      evaluations_.erase(step);
      problems_[name] = error.message();
    }
  }
  changed = changed || stamps.size() != evaluation_stamps_.size();
  evaluation_stamps_ = std::move(stamps);
  std::erase_if(evaluations_,
                [&](const auto& item) { return !evaluation_stamps_.contains(item.first); });
  return changed;
}

bool RunReader::read_dump_names() {
  std::vector<std::int64_t> steps;
  for (const Folder::Entry& entry : folder_.list(kRolloutsFolder, kMaxFolderEntries)) {
    const std::optional<std::int64_t> step = step_of_rollouts(entry.name);
    if (step && !entry.is_folder) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  if (steps == dumps_) return false;
  dumps_ = std::move(steps);
  return true;
}

void RunReader::take_log_line(std::string_view line) {
  // "2026-11-15T12:00:00Z warning: text"
  constexpr std::string_view kMark = " warning: ";
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || !line.substr(space).starts_with(kMark)) return;
  const std::string time(line.substr(0, std::min<std::size_t>(space, 40)));
  const std::string text(line.substr(space + kMark.size(), kMaxWarningBytes));
  for (RunWarning& warning : warnings_) {
    if (warning.text != text) continue;
    ++warning.count;
    warning.last = time;
    return;
  }
  if (warnings_.size() >= kMaxWarnings) {
    problems_[kLogFile] =
        fmt::format("only the first {} different warnings are shown", kMaxWarnings);
    return;
  }
  warnings_.push_back({text, time, time, 1});
}

void RunReader::find_gate_events() {
  gate_events_.clear();
  const Column* gate = table_.find("antisd/gate");
  if (gate == nullptr) return;
  bool open = false;
  for (std::size_t row = 0; row < gate->values.size(); ++row) {
    if (!std::isfinite(gate->values[row])) continue;
    const bool now = gate->values[row] > 0.5;
    if (now == open) continue;
    open = now;
    gate_events_.push_back({table_.steps()[row], open});
  }
  if (gate_events_.size() > kMaxGateEvents)
    gate_events_.erase(gate_events_.begin(), gate_events_.end() - kMaxGateEvents);
}

std::vector<std::string> RunReader::notes() const {
  std::vector<std::string> notes;
  for (const auto& [file, problem] : problems_)
    notes.push_back(problem);
  if (broken_rows_ > 0)
    notes.push_back(fmt::format("metrics.jsonl: {} lines are not a step's rows", broken_rows_));
  if (table_.left_out())
    notes.push_back(
        fmt::format("metrics.jsonl: only {} metrics and {} rows are shown", kMaxColumns, kMaxRows));
  return notes;
}

std::string RunReader::method() const {
  const std::string configured = plain_value(config_, "method.name");
  if (!configured.empty()) return configured;
  const auto found = run_.find("method");
  return found != run_.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace antisd::inline report
