// A user's own reward, in any language: a pool of processes that read one request per line from
// standard input and write one answer per line to standard output, flushed.
//
//   CommandReward reward({.command = "python3 my_reward.py", .workers = 4});
//   Verdict verdict = reward.grade({{"problem", "2+2"}, {"response", "4"}});
//
// The protocol:
//   to the process:    {"problem": "2+2", "answer": "4", "response": "4", "row_id": "sums-1", "id":
//   7} from the process:  {"reward": 1.0}  or  {"id": 7, "reward": 1.0, "reason": "right"}
//
// A request has "problem" (the problem's text), "answer" (text, may be empty), "response" (text),
// "tests" (where the row has them), "row_id" (the row's own id, or FILE-NUMBER), "id" (the number
// of the request), and every other column of the row under the file's name for it. Where the row
// has one of these six names too, the request's value is the one listed here. An answer has
// "reward", a finite number or null (undecided); "reason", a text for the record, may be
// absent. A process has one request at a time, so the "id" may be left out: answers are then taken
// in the order of the requests. A process gives an id in all answers or in none; one that mixes
// them, or that without ids writes more answers than it got requests, is ended.
//
// A process that ends, writes JSON that is not an answer, or does not answer in time is ended and
// restarted; its request has no reward. Lines with another request's id are skipped, and so are
// lines that are not JSON, with one warning. No process that it started outlives it or this process
// (io/process/supervised_command.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "algo/verdict.h"
#include "io/json.h"
#include "reward/worker_pool.h"

namespace antisd::inline reward {

struct CommandRewardOptions {
  std::string command;    // for /bin/sh
  double timeout_s = 10;  // per answer
  int workers = 0;        // 0: one per core
};

// A line that the process wrote, read as the answer to one request.
struct RewardLine {
  enum {
    kAnswer,
    kNoNumber,  // an answer whose reward is neither a finite number nor null
    kOther,     // the answer to another request
    kLog,       // not JSON
    kGarbage    // JSON, but not an answer
  } kind = kAnswer;
  std::optional<bool> has_id;  // of an answer or another request's; unknown if it is not JSON
  Verdict verdict;             // of an answer; without one, the reason
};

// A line without an id is the answer.
RewardLine read_reward_line(const std::string& text, std::int64_t id);

class CommandReward {
 public:
  // Throws InputError if the command is empty or a number is out of range. Processes are started on
  // demand.
  explicit CommandReward(CommandRewardOptions options);
  ~CommandReward();

  // `request` is an object; its id is replaced by the pool's. Any number of threads may call it.
  Verdict grade(const Json& request);

  // Sends one request to an existing or new process. RunError, with how it ended and the first
  // lines of its standard error, if it does not answer or its answer is not a reward; null counts
  // as one.
  void probe(const Json& request);

  // Warnings that the user has not seen yet.
  std::vector<std::string> take_warnings();

 private:
  class Worker;
  enum class Asked { kAnswered, kNoNumber, kFailed };
  Asked ask(Worker& worker, const Json& request, Verdict& verdict);
  bool is_idle(Worker& worker, Verdict& verdict);
  void note_log_line(const std::string& line);

  CommandRewardOptions options_;
  WorkerPool<Worker> pool_;
  std::atomic<std::int64_t> next_id_ = 1;
  std::mutex mutex_;  // of what follows
  std::vector<std::string> warnings_;
  bool log_line_said_ = false;
};

}  // namespace antisd::inline reward
