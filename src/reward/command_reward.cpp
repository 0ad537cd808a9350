#include "reward/command_reward.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "core/utf8.h"
#include "io/process/supervised_command.h"
#include "reward/line_process.h"

namespace antisd::inline reward {
namespace {

constexpr int kMaxStrayLines = 1000;  // answers to abandoned requests, and log lines

std::string shortened(const std::string& line) {
  return replace_invalid_utf8(line.substr(0, 100));
}

int checked_workers(const CommandRewardOptions& options) {
  if (options.command.empty())
    throw InputError("there is no command",
                     {.where = "reward.command", .remedy = "name a program that writes rewards"});
  if (!(options.timeout_s > 0) || options.workers < 0)
    throw InputError("timeout_s must be above 0 and workers at least 0",
                     {.where = "reward", .remedy = "correct reward.timeout_s or reward.workers"});
  return options.workers > 0 ? options.workers : available_threads();
}

}  // namespace

// One process, and how it answers.
class CommandReward::Worker : public LineProcess {
 public:
  explicit Worker(const std::string& command) : LineProcess(command, "reward.command") {}

  // Whether the process answers with an id as it did before, or without as it did before.
  bool is_consistent(const RewardLine& line) {
    if (line.kind == RewardLine::kLog || line.kind == RewardLine::kGarbage) return true;
    if (!line.has_id) return true;
    if (!gives_ids_) gives_ids_ = line.has_id;
    return gives_ids_ == line.has_id;
  }

  bool answers_in_order() const { return gives_ids_ == false; }

  bool has_settled = false;  // its first answer without an id was seen to be the only one

 private:
  std::optional<bool> gives_ids_;  // in its answers; unknown before the first
};

CommandReward::CommandReward(CommandRewardOptions options)
    : options_(std::move(options)), pool_(checked_workers(options_)) {
  start_supervision();
}

CommandReward::~CommandReward() = default;

RewardLine read_reward_line(const std::string& text, std::int64_t id) {
  RewardLine line;
  Json answer;
  try {
    answer = parse_json(text, "reward.command");
  } catch (const InputError&) {
    // Not JSON, but the result of non-finite arithmetic in Python and JavaScript.
    const bool is_nan = text.find("NaN") != std::string::npos;
    const bool not_finite = text.find("\"reward\"") != std::string::npos &&
                            (is_nan || text.find("Infinity") != std::string::npos);
    line.kind = not_finite ? RewardLine::kNoNumber : RewardLine::kLog;
    line.verdict.reason = fmt::format("reward.command gave a reward that is not a number: {}",
                                      is_nan ? "NaN" : "Infinity");
    return line;
  }
  Verdict& verdict = line.verdict;
  if (!answer.is_object() || !answer.contains("reward")) {
    line.kind = RewardLine::kGarbage;
    verdict.reason = "reward.command wrote something other than an answer: " + shortened(text);
    return line;
  }
  line.has_id = answer.contains("id");
  if (*line.has_id && answer["id"] != id) {
    line.kind = RewardLine::kOther;
    return line;
  }
  if (answer.contains("reason") && answer["reason"].is_string())
    verdict.reason = answer["reason"].get<std::string>();
  const Json& reward = answer["reward"];
  if (reward.is_null()) {
    if (verdict.reason.empty()) verdict.reason = "reward.command gave no reward";
  } else if (!reward.is_number() || !std::isfinite(reward.get<double>())) {
    line.kind = RewardLine::kNoNumber;
    verdict.reason =
        "reward.command gave a reward that is not a number: " + shortened(to_json_line(reward));
  } else {
    verdict.reward = reward.get<double>();
  }
  return line;
}

// Whether nothing but log lines was written since the last answer. An answer without an id would
// be taken for that of the next request.
bool CommandReward::is_idle(Worker& worker, Verdict& verdict) {
  if (!worker.answers_in_order()) return true;
  for (int stray = 0; stray < kMaxStrayLines; ++stray) {
    const std::optional<std::string> text = worker.unasked_line();
    if (!text) return true;
    const RewardLine line = read_reward_line(*text, /*id=*/0);
    if (line.kind == RewardLine::kLog) {
      note_log_line(shortened(*text));
      continue;
    }
    verdict.reason = "reward.command writes more lines than it gets requests: " + shortened(*text);
    return false;
  }
  return true;
}

// The answer to one request, or the reason in `verdict`. A worker that failed is unusable.
CommandReward::Asked CommandReward::ask(Worker& worker, const Json& request, Verdict& verdict) {
  if (!is_idle(worker, verdict)) return Asked::kFailed;
  Json row = request;
  const std::int64_t id = next_id_++;
  row["id"] = id;
  const auto deadline = LineProcess::after(options_.timeout_s);
  std::string log;
  std::optional<std::string> text = worker.ask(to_json_line(row) + "\n", deadline, verdict.reason);
  for (int stray = 0; text && stray < kMaxStrayLines; ++stray) {
    const RewardLine line = read_reward_line(*text, id);
    if (!worker.is_consistent(line)) {
      verdict.reason = "reward.command answers some requests with an id and some without";
      return Asked::kFailed;
    }
    if (line.kind != RewardLine::kLog && line.kind != RewardLine::kOther) {
      // A program that writes two answers a request does so from its first one on.
      if (worker.answers_in_order() && !std::exchange(worker.has_settled, true)) {
        worker.settle();
        if (!is_idle(worker, verdict)) return Asked::kFailed;
      }
      verdict = line.verdict;
      return line.kind == RewardLine::kAnswer     ? Asked::kAnswered
             : line.kind == RewardLine::kNoNumber ? Asked::kNoNumber
                                                  : Asked::kFailed;
    }
    if (line.kind == RewardLine::kLog) note_log_line(log = shortened(*text));
    text = worker.read_line(deadline, verdict.reason);
  }
  if (text) verdict.reason = "reward.command writes lines without an answer";
  if (!log.empty()) verdict.reason += fmt::format("; its last line that is not JSON: {}", log);
  return Asked::kFailed;
}

void CommandReward::note_log_line(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (log_line_said_) return;
  log_line_said_ = true;
  warnings_.push_back(
      fmt::format("reward.command writes lines to standard output that are not JSON; they are "
                  "skipped, write them to standard error: {}",
                  line));
}

std::vector<std::string> CommandReward::take_warnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

Verdict CommandReward::grade(const Json& request) {
  ANTISD_CHECK(request.is_object());
  std::unique_ptr<Worker> worker = pool_.acquire();
  Verdict verdict;
  try {
    if (!worker) worker = std::make_unique<Worker>(options_.command);
    if (ask(*worker, request, verdict) == Asked::kFailed) worker.reset();
  } catch (const RunError& error) {
    verdict.reason = error.message();
    worker.reset();
  } catch (...) {
    pool_.give_back(nullptr);
    throw;
  }
  pool_.give_back(std::move(worker));
  return verdict;
}

void CommandReward::probe(const Json& request) {
  std::unique_ptr<Worker> worker = pool_.acquire();
  Verdict verdict;
  Asked asked = Asked::kFailed;
  std::string errors;
  try {
    if (worker) asked = ask(*worker, request, verdict);
    if (asked == Asked::kFailed) {  // no process yet, or one that ended while idle
      worker = std::make_unique<Worker>(options_.command);
      asked = ask(*worker, request, verdict);
      if (asked == Asked::kFailed) errors = worker->quoted_errors();
    }
  } catch (...) {
    pool_.give_back(nullptr);
    throw;
  }
  pool_.give_back(asked == Asked::kFailed ? nullptr : std::move(worker));
  if (asked == Asked::kAnswered) return;
  throw RunError(
      fmt::format("the reward program `{}` does not grade: {}{}", options_.command, verdict.reason,
                  errors),
      {.where = "reward.command",
       .remedy = fmt::format(
           "try it by hand: it reads a line like {{\"id\": 1, \"problem\": \"..\", \"answer\": "
           "\"..\", \"response\": \"\"}} and within reward.timeout_s = {} seconds writes one like "
           "{{\"reward\": 0.5}} and flushes it",
           options_.timeout_s)});
}

}  // namespace antisd::inline reward
