// A teacher's context from a user's program (context.command), in any language: processes that read
// one request per line and write one answer per line, flushed, as reward.command's do.
//
//   ContextCommand program({.command = "python3 my_hints.py", .workers = 4});
//   const std::vector<ContextAnswer> answers = program.ask(requests);   // in their order
//
// The protocol:
//   to the process:    {"id": 7, "problem": "2+2", "answer": "4", "response": "5", "reward": 0.0,
//                       "correct": false, "reason": "", "row_id": "sums-1"}
//   from the process:  {"context": "Count again."}  or  {"id": 7, "context": null}
//
// A request also has every column of the problem's row under the file's name for it, where that is
// not one of these. A process that ends, answers something else or not in time is ended and
// replaced; that costs its own request alone. Lines that are not JSON are skipped.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algo/response.h"
#include "core/thread_pool.h"
#include "data/problem.h"
#include "io/json.h"
#include "reward/line_process.h"
#include "reward/worker_pool.h"

namespace antisd::inline reward {

struct ContextCommandOptions {
  std::string command;    // for /bin/sh
  double timeout_s = 10;  // per answer
  int workers = 0;        // processes; 0: one per core
};

struct ContextAnswer {
  std::string text;    // empty: the program has none, or it failed
  std::string reason;  // why it failed; empty otherwise
};

// What the program is told of a graded response.
Json context_request(const Problem& problem, const Response& response);

class ContextCommand {
 public:
  explicit ContextCommand(ContextCommandOptions options);
  ~ContextCommand();

  std::vector<ContextAnswer> ask(std::span<const Json> requests);

  // Asks once before a run. RunError, with the first lines of its standard error, if it fails.
  void probe(const Json& request);

 private:
  ContextAnswer ask_one(Json request, std::string* errors = nullptr);

  ContextCommandOptions options_;
  ThreadPool threads_;
  WorkerPool<LineProcess> processes_;
  std::atomic<std::int64_t> next_id_ = 1;
};

}  // namespace antisd::inline reward
