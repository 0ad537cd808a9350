#include "reward/python_reward.h"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/wait.h>

#include "core/error.h"
#include "core/thread_pool.h"
#include "io/process/python_command.h"
#include "reward/line_process.h"
#include "reward/python_program.h"

namespace antisd::inline reward {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFunctionKey = "reward.function";
constexpr int kMaxStaleAnswers = 100;  // of forks that the user's code has left

// Everything about a function that cannot be used.
[[noreturn]] void refuse(const std::string& what, const std::string& remedy,
                         const char* key = kFunctionKey) {
  throw InputError(what, {.where = key, .remedy = remedy});
}

int checked_python_workers(const PythonRewardOptions& options) {
  if (!(options.timeout_s > 0) || options.workers < 0 || options.memory_mb < 0)
    throw InputError("timeout_s must be above 0, and workers and memory_mb at least 0",
                     {.where = "reward", .remedy = "correct it"});
  return options.workers > 0 ? options.workers : available_threads();
}

// The hash seed is fixed: a function that goes through a set would otherwise grade by chance.
std::string worker_command(const std::string& python) {
  return "export PYTHONHASHSEED=\"${PYTHONHASHSEED:-0}\"; " +
         python_command(python, python_program());
}

}  // namespace

// What a call gave.
struct PythonReward::Answer {
  enum {
    kRewards,
    kRaised,
    kMisfit,     // the function asks for what the rows lack
    kMisanswer,  // it returned something other than rewards
    kFailed      // no answer; the process is gone
  } kind = kFailed;
  std::vector<Verdict> verdicts = {};  // of kRewards
  std::string reason = {};             // otherwise
  std::string errors = {};             // of kFailed: standard error, for a message
  bool is_last = false;                // of kRaised: the process ends
};

PythonReward::PythonReward(PythonRewardOptions options)
    : options_(std::move(options)),
      python_(python_name(options_.python)),
      pool_(checked_python_workers(options_)) {
  const std::size_t colon = options_.function.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == options_.function.size())
    refuse(fmt::format("'{}' is not FILE.py:FUNCTION", options_.function),
           "write for example my_reward.py:score");
  file_ = fs::absolute(options_.function.substr(0, colon));
  name_ = options_.function.substr(colon + 1);
  std::error_code ignored;
  if (!fs::is_regular_file(file_, ignored))
    refuse(fmt::format("there is no file {}", options_.function.substr(0, colon)),
           "correct the path; it is relative to the folder that antisd is started in");
  start_supervision();
  std::unique_ptr<LineProcess> first = pool_.acquire();
  std::string form;
  first = start(form);
  takes_batches_ = form == "batch";
  pool_.give_back(std::move(first));
}

PythonReward::~PythonReward() = default;

// `form`: how the function is called.
std::unique_ptr<LineProcess> PythonReward::start(std::string& form) {
  auto worker = std::make_unique<LineProcess>(worker_command(python_), kFunctionKey);
  const Json request = {
      {"start",
       {{"file", file_.string()}, {"function", name_}, {"memory_mb", options_.memory_mb}}}};
  std::string problem;
  const std::optional<std::string> line =
      worker->ask(to_json_line(request) + "\n", LineProcess::after(options_.start_s), problem);
  if (!line) {
    const std::optional<int> status = worker->status();
    if (status && WIFEXITED(*status) && is_not_runnable(WEXITSTATUS(*status)))
      refuse(fmt::format("{} cannot be run", python_),
             "install Python, or name one by reward.python or ANTISD_PYTHON", "reward.python");
    refuse(fmt::format("{} cannot be loaded within {} seconds: {}{}", options_.function,
                       options_.start_s, problem, worker->quoted_errors()),
           fmt::format("try `{} {}`", python_, file_.string()));
  }
  const Json answer = parse_json(*line, kFunctionKey);
  if (answer.contains("refused")) {
    const Json& refused = answer["refused"];
    refuse(fmt::format("{} {}", file_.string(), refused["what"].get<std::string>()),
           refused["remedy"].get<std::string>());
  }
  form = answer.value("ready", "");
  return worker;
}

// Throws if it is not an answer.
PythonReward::Answer PythonReward::read_answer(const Json& line, std::size_t rows) {
  Answer answer;
  if (line.contains("error")) {
    answer.kind = line.contains("misfit")      ? Answer::kMisfit
                  : line.contains("misanswer") ? Answer::kMisanswer
                                               : Answer::kRaised;
    answer.reason = fmt::format("{} {}", kFunctionKey, line["error"].get<std::string>());
    answer.is_last = line.value("last", false);
    return answer;
  }
  const Json &rewards = line.at("rewards"), &reasons = line.at("reasons");
  if (rewards.size() != rows || reasons.size() != rows)
    throw InputError("an answer of another size");
  for (std::size_t i = 0; i < rows; ++i) {
    Verdict& verdict = answer.verdicts.emplace_back();
    verdict.reason = reasons[i].get<std::string>();
    if (!rewards[i].is_null()) verdict.reward = rewards[i].get<double>();
  }
  answer.kind = Answer::kRewards;
  return answer;
}

// A worker that is no longer usable is destroyed.
PythonReward::Answer PythonReward::ask(std::unique_ptr<LineProcess>& worker,
                                       std::span<const Json> rows) {
  const std::int64_t id = next_id_++;
  Json request = {{"id", id}, {"rows", Json::array()}};
  for (const Json& row : rows)
    request["rows"].push_back(row);
  const auto deadline = LineProcess::after(options_.timeout_s);
  std::string problem;
  std::optional<std::string> line = worker->ask(to_json_line(request) + "\n", deadline, problem);
  for (int stale = 0; line && stale < kMaxStaleAnswers; ++stale) {
    try {
      const Json found = parse_json(*line, kFunctionKey);
      if (found.at("id") == id) {
        Answer answer = read_answer(found, rows.size());
        if (answer.is_last) worker.reset();
        return answer;
      }
    } catch (const std::exception&) {
      break;  // the user's code can reach our end of the channel
    }
    line = worker->read_line(deadline, problem);
  }
  if (line) problem = fmt::format("{} writes what is not an answer", kFunctionKey);
  Answer answer{.kind = Answer::kFailed, .reason = problem, .errors = worker->quoted_errors()};
  worker.reset();
  return answer;
}

PythonReward::Answer PythonReward::ask_pool(std::span<const Json> rows) {
  std::unique_ptr<LineProcess> worker = pool_.acquire();
  Answer answer;
  try {
    std::string form;
    if (!worker) worker = start(form);
    answer = ask(worker, rows);
  } catch (const Error& error) {  // a process cannot be started now
    worker.reset();
    answer.reason = error.message();
  } catch (...) {
    pool_.give_back(nullptr);
    throw;
  }
  pool_.give_back(std::move(worker));
  return answer;
}

std::vector<Verdict> PythonReward::call(std::span<const Json> rows) {
  Answer answer = ask_pool(rows);
  if (answer.kind == Answer::kRewards) return std::move(answer.verdicts);
  return std::vector<Verdict>(rows.size(), {.reward = {}, .reason = answer.reason});
}

std::vector<Verdict> PythonReward::grade(std::span<const Json> rows) {
  if (takes_batches_) return call(rows);
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < rows.size(); ++i)
    verdicts.push_back(call(rows.subspan(i, 1)).front());
  return verdicts;
}

void PythonReward::probe(const Json& row) {
  const Answer answer = ask_pool({&row, 1});
  switch (answer.kind) {
    case Answer::kRewards:
      return;
    case Answer::kRaised: {
      const std::lock_guard lock(mutex_);
      warnings_.push_back(fmt::format(
          "{} when it was asked about an empty response; a call that raises gives no grades",
          answer.reason));
      return;
    }
    case Answer::kMisfit:
      refuse(fmt::format("{} cannot be called: {}", options_.function, answer.reason),
             "give the rows that column, or the parameter a default");
    case Answer::kMisanswer:
    case Answer::kFailed:
      throw RunError(
          fmt::format("{} does not grade: {}{}", options_.function, answer.reason, answer.errors),
          {.where = kFunctionKey,
           .remedy = fmt::format("try `antisd grade python {} rows.jsonl`; a call has "
                                 "reward.timeout_s = {} seconds",
                                 options_.function, options_.timeout_s)});
  }
}

std::vector<std::string> PythonReward::take_warnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

}  // namespace antisd::inline reward
