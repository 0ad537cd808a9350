#include "report/sweep/sweep.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <thread>

#include <fmt/format.h>

#include "config/run_config.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/system_error.h"
#include "report/sweep/run_figures.h"
#include "run/recorder.h"
#include "run/run_files.h"

namespace antisd::inline report {
namespace {

namespace fs = std::filesystem;

constexpr auto kBetweenLooks = std::chrono::milliseconds(200);
constexpr std::int64_t kLookBytes = 1 << 20;  // of a growing file per look
constexpr int kColumnsForBars = 72;
constexpr std::size_t kMessageBytes = 4096;  // of a failed run's output

std::vector<std::string> assignments_of(const GridRun& run, const fs::path& directory) {
  std::vector<std::string> all = run.assignments;
  all.push_back("record.dir=" + directory.string());
  return all;
}

void read_config(RunConfig& config, const SweepSettings& settings, const PlannedRun& run) {
  if (!settings.config.empty()) config.options().load_toml(settings.config);
  for (const std::string& assignment : assignments_of(run.grid, run.directory))
    config.options().assign(assignment);
  config.resolve();
}

// A run may be extended; everything else must match its first configuration.
void check_same_configuration(const RunConfig& wanted, const fs::path& file) {
  RunConfig found;
  try {
    found.options().load_toml(file);
    found.resolve();  // keys that an older version did not write get their defaults
  } catch (const InputError&) {
    return;  // the run itself reports it when it is resumed
  }
  for (const Option& option : wanted.options().options()) {
    if (option.key() == "train.steps" || option.key() == "record.dir") continue;
    const std::string before = found.options().find(option.key())->value_toml();
    if (before == option.value_toml()) continue;
    throw InputError(fmt::format("the run there was started with {} = {}, now it is {}",
                                 option.key(), before, option.value_toml()),
                     {.where = file.parent_path().string(),
                      .remedy = "choose another record.dir, or remove the folder"});
  }
}

bool is_finished(const fs::path& run, std::int64_t steps) {
  const fs::path file = run / kRunFile;
  if (!fs::exists(file)) return false;
  try {
    const Json info = parse_json(read_file(file), file.string());
    return info.value("exit_reason", "") == "finished" && info.value("last_step", -1) >= steps;
  } catch (const std::exception&) {  // damaged: the run itself reports it
    return false;
  }
}

JobSpec job_of(const SweepSettings& settings, const PlannedRun& run) {
  std::vector<std::string> arguments = {settings.program.string(), "train"};
  if (!settings.config.empty()) arguments.push_back(settings.config);
  for (const std::string& assignment : assignments_of(run.grid, run.directory))
    arguments.push_back(assignment);
  for (const std::string& flag : {std::string("--threads"), std::to_string(settings.threads),
                                  std::string("--device"), settings.device, std::string("--quiet")})
    arguments.push_back(flag);
  if (settings.processes > 1) {
    arguments.emplace_back("--processes");
    arguments.push_back(std::to_string(settings.processes));
  }
  if (run.has_begun) arguments.emplace_back("--resume");
  return {.name = run.grid.name,
          .arguments = std::move(arguments),
          .output = run.directory / "console.txt",
          .sign_of_life = run.directory / kMetricsFile};
}

// The error that a run ended with: its last line, or how the process ended.
std::string failure_message(const Job& job) {
  if (job.exit_status > 128)
    return fmt::format("ended by signal {}; see {}", job.exit_status - 128,
                       job.spec.output.string());
  std::string text;
  try {
    text = read_file(job.spec.output);
  } catch (const Error&) {
  }
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  text = text.substr(text.rfind('\n') + 1).substr(0, kMessageBytes);
  return text.empty() ? fmt::format("exit status {}", job.exit_status) : text;
}

std::string figure(const char* name, double value, const char* format) {
  if (std::isnan(value)) return "";
  return fmt::format("  {} {}", name, fmt::format(fmt::runtime(format), value));
}

std::string line_of(const Job& job, const PlannedRun& run, const RunFigures& figures,
                    std::size_t name_width) {
  std::string line =
      fmt::format("{:<{}} {:>4}/{:<4}", run.grid.name, name_width, figures.step, run.steps);
  switch (job.state) {
    case JobState::kWaiting:
      return line + " waits";
    case JobState::kFailed:
      return line + " failed";
    case JobState::kStopped:
      return line + " stopped";
    case JobState::kDone:
      line += " done";
      break;
    case JobState::kRunning:
      line += " ";
      break;
  }
  if (!figures.accuracy.empty())
    line += figure("accuracy", figures.accuracy.back().average, "{:.3f}");
  line += figure("reward", figures.reward, "{:.3f}");
  line += figure("length", figures.tokens, "{:.0f}");
  if (figures.lambda > 0) line += figure("lambda", figures.lambda, "{:.2f}");
  return line;
}

std::string bar_of(std::int64_t step, std::int64_t steps) {
  constexpr std::int64_t kWidth = 16;
  const std::int64_t filled =
      steps > 0 ? std::clamp<std::int64_t>(kWidth * step / steps, 0, kWidth) : 0;
  return fmt::format("[{:#<{}}{:.<{}}]", "", filled, "", kWidth - filled);
}

std::size_t widest_name(const std::vector<const PlannedRun*>& runs) {
  std::size_t width = 0;
  for (const PlannedRun* run : runs)
    width = std::max(width, run->grid.name.size());
  return width;
}

// Only running ones, if not all fit.
std::vector<std::string> lines_of(const std::vector<Job>& jobs,
                                  const std::vector<const PlannedRun*>& runs,
                                  const std::vector<RunFigures>& figures, bool with_bars) {
  std::vector<std::string> lines;
  int count[5] = {};
  const bool all = jobs.size() <= 16;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    ++count[static_cast<int>(jobs[i].state)];
    if (!all && jobs[i].state != JobState::kRunning) continue;
    const std::string bar = with_bars ? bar_of(figures[i].step, runs[i]->steps) + " " : "";
    lines.push_back(bar + line_of(jobs[i], *runs[i], figures[i], widest_name(runs)));
  }
  if (!all) {
    lines.push_back(fmt::format("{} done, {} running, {} waiting, {} failed", count[2], count[1],
                                count[0], count[4]));
  }
  return lines;
}

}  // namespace

std::vector<PlannedRun> plan_sweep(const SweepSettings& settings) {
  std::vector<PlannedRun> runs;
  RecordConfig loggers{.loggers = {}};  // those of all runs
  for (GridRun& grid : settings.grid.runs()) {
    PlannedRun run{.grid = std::move(grid)};
    run.directory = settings.directory / run.grid.name;
    RunConfig config;
    read_config(config, settings, run);
    run.steps = config.train.steps;
    run.has_begun = holds_a_run(run.directory);
    if (run.has_begun && fs::exists(run.directory / kConfigFile))
      check_same_configuration(config, run.directory / kConfigFile);
    run.is_done = run.has_begun && is_finished(run.directory, run.steps);
    if (!run.is_done) std::ranges::copy(config.record.loggers, std::back_inserter(loggers.loggers));
    runs.push_back(std::move(run));
  }
  check_loggers(loggers);
  return runs;
}

SweepEnd run_sweep(const SweepSettings& settings, const std::vector<PlannedRun>& runs,
                   Console& console, LiveTable& table, const std::function<bool()>& stop) {
  ::unsetenv("WANDB_RUN_ID");  // each run is one of its own
  std::vector<const PlannedRun*> planned;
  std::vector<JobSpec> specs;
  std::vector<RunReader> readers;
  for (const PlannedRun& run : runs) {
    if (run.is_done) continue;
    std::error_code error;
    fs::create_directories(run.directory, error);
    if (error) throw_cannot_write(run.directory, error.value());
    planned.push_back(&run);
    specs.push_back(job_of(settings, run));
    readers.emplace_back(run.grid.name, Folder(run.directory));
  }
  JobQueue queue(std::move(specs), settings.limits);
  std::vector<RunFigures> figures(planned.size());
  std::vector<JobState> shown(planned.size(), JobState::kWaiting);
  std::vector<std::size_t> evaluated(planned.size());  // evaluations already printed as plain lines
  SweepEnd end;
  for (bool more = true; more;) {
    more = queue.advance();
    if (stop() && !end.stopped) {
      end.stopped = true;
      queue.stop();
      table.clear();
      console.info("stopping: each run finishes its step and saves");
    }
    for (std::size_t i = 0; i < planned.size(); ++i) {
      const Job& job = queue.jobs()[i];
      if (readers[i].refresh(kLookBytes).first_step >= 0)
        figures[i] = figures_of(readers[i].table());
      const bool is_news = job.state != shown[i] || figures[i].accuracy.size() > evaluated[i];
      evaluated[i] = figures[i].accuracy.size();
      if (!table.is_live() && is_news && job.state != JobState::kFailed)
        console.info(line_of(job, *planned[i], figures[i], widest_name(planned)));
      if (job.state == shown[i]) continue;
      shown[i] = job.state;
      if (job.state == JobState::kFailed) {
        end.failed.push_back({job.spec.name, failure_message(job)});
        table.clear();
        console.error(fmt::format("{}: {}", job.spec.name, end.failed.back().message));
      }
    }
    table.draw(lines_of(queue.jobs(), planned, figures, table.columns() >= kColumnsForBars));
    if (more) std::this_thread::sleep_for(kBetweenLooks);
  }
  table.clear();
  if (table.is_live()) {
    for (const std::string& line : lines_of(queue.jobs(), planned, figures, false))
      console.info(line);
  }
  return end;
}

}  // namespace antisd::inline report
