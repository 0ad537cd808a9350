// A user's own reward, in any language: a pool of processes that read one request per line and
// write one answer per line.
//
//   CommandReward reward({.command = "python3 my_reward.py", .workers = 4});
//   Verdict verdict = reward.grade({{"problem", "2+2"}, {"response", "4"}});
//
// The protocol:
//   to the process:    {"id": 7, "problem": "2+2", "response": "4"}
//   from the process:  {"id": 7, "reward": 1.0, "reason": "right"}     reward null: undecided
//
// A process that ends, writes JSON that is not an answer, or does not answer in time is ended and
// restarted; its request has no reward. Lines with another request's id are skipped, and so are
// lines that are not JSON, with one warning. No process that it started outlives it or this process
// (io/process/supervised_command.h).
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "algo/verdict.h"
#include "io/json.h"

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
    kOther,   // the answer to another request
    kLog,     // not JSON
    kGarbage  // JSON, but not an answer
  } kind = kAnswer;
  Verdict verdict;  // of an answer; for garbage, the reason
};

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
  bool ask(Worker& worker, const Json& request, Verdict& verdict);
  void note_log_line(const std::string& line);
  std::unique_ptr<Worker> acquire();
  void give_back(std::unique_ptr<Worker> worker);

  CommandRewardOptions options_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<Worker>> idle_;
  int out_ = 0;
  std::int64_t next_id_ = 1;
  std::vector<std::string> warnings_;
  bool log_line_said_ = false;
};

}  // namespace antisd::inline reward
