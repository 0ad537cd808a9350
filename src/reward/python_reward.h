// A user's own reward as a Python function, in processes that load it once and are called often.
//
//   PythonReward reward({.function = "my_reward.py:score", .workers = 4});
//   std::vector<Verdict> verdicts = reward.grade(rows);  // one per row
//
// Two signatures are known by their parameters (docs/rewards.md): TRL's, which is called with the
// rows of a group in lists, and verl's, which is called once per row. The other end is
// python_program.py, whose head has the protocol. What a call costs when it goes wrong (an
// exception, a crash, a hang, too much memory, an answer that is none) is the grades of its own
// rows; a process that may have suffered is replaced.
//
// A row has "prompt" (text, or a list of chat messages), "response", "answer", "source", "ids" (of
// the response's tokens, or null) and "columns", every column of the problem's row.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "algo/verdict.h"
#include "io/json.h"
#include "reward/worker_pool.h"

namespace antisd::inline reward {

class LineProcess;

struct PythonRewardOptions {
  std::string function;           // "FILE.py:FUNCTION"
  std::string python = {};        // "": what ANTISD_PYTHON names, or python3
  double timeout_s = 10;          // per call
  double start_s = 120;           // for the interpreter and what the file imports
  std::int64_t memory_mb = 8192;  // per process; 0: no limit
  int workers = 0;                // 0: one per core
};

class PythonReward {
 public:
  // Starts a process. InputError if Python, the file or the function is missing or not usable.
  explicit PythonReward(PythonRewardOptions options);
  ~PythonReward();

  // Whether a call takes many rows: TRL's signature.
  bool takes_batches() const { return takes_batches_; }

  // One call for all rows, or one each. Any number of threads may call it.
  std::vector<Verdict> grade(std::span<const Json> rows);

  // Grades one row. InputError if the function asks for what the row lacks; RunError if it does not
  // answer, or not with rewards. What it raises becomes a warning: it may be about this row alone.
  void probe(const Json& row);

  // Warnings that the user has not seen yet.
  std::vector<std::string> take_warnings();

 private:
  struct Answer;
  static Answer read_answer(const Json& line, std::size_t rows);
  std::unique_ptr<LineProcess> start(std::string& form);
  std::vector<Verdict> call(std::span<const Json> rows);
  Answer ask(std::unique_ptr<LineProcess>& worker, std::span<const Json> rows);
  Answer ask_pool(std::span<const Json> rows);

  PythonRewardOptions options_;
  std::filesystem::path file_;
  std::string name_;  // of the function
  std::string python_;
  WorkerPool<LineProcess> pool_;
  bool takes_batches_ = false;
  std::atomic<std::int64_t> next_id_ = 1;
  std::mutex mutex_;  // of what follows
  std::vector<std::string> warnings_;
};

}  // namespace antisd::inline reward
