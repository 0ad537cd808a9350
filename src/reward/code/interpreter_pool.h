// Python interpreters that wait inside the sandbox, so that a program costs a fork, not a start.
//
//   InterpreterPool pool(options);
//   auto lease = pool.acquire(/*numpy=*/false);                     // waits for a free one
//   MainRun run = run_main(*lease, source, input, pool.options());  // reward/code/run.h
//
// An interpreter runs one program at a time. One that fails is replaced at the next acquire().
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "reward/code/sandbox.h"

namespace antisd::inline reward {

struct CodeGraderOptions {
  double timeout_s = 10;  // wall time: all asserts without the tests' own time, or one case
  double cpu_s = 10;      // processor time of one process
  int memory_mb = 4096;   // per process, in addition to the interpreter itself (EvalPlus's limit)
  int processes = 1;      // 1: only threads; more: fork works
  std::int64_t output_bytes = 16 << 20;  // standard output and error of one run
  std::int64_t file_bytes = 64 << 20;    // all files of one program together
  std::string sandbox = "auto";          // "reduced", or "none": deliberately without isolation
  int workers = 0;                       // programs at a time; 0: one per core
  std::string python;                    // empty: /usr/bin/python3, then PATH
};

// A zygote's message: an object with "ready", "started" (numbers of processes), "time", "failed" (a
// text), or "ended", "status" and "cpu", all with the expected types. RunError for anything else.
Json read_zygote_message(std::string_view text);

// One interpreter process and its commands (harness_zygote.py).
class Zygote {
 public:
  struct Ended {
    int pid = 0;     // in the zygote's process namespace
    int status = 0;  // as from waitpid
    double cpu_s = 0;
  };

  // Throws RunError if the interpreter does not start.
  Zygote(const Interpreter& interpreter, Confinement confinement, const CodeGraderOptions& options,
         bool numpy);

  bool has_numpy() const { return numpy_; }
  // Starts children with `descriptors`; throws RunError if that fails.
  std::vector<int> start(const std::string& what, const std::vector<int>& descriptors);
  void kill(int pid);
  double processor_time(int pid);  // so far, in seconds
  int control() const { return process_.control(); }
  // The next child that ended; nothing within `milliseconds`. Throws RunError if the zygote itself
  // is gone.
  std::optional<Ended> wait_ended(int milliseconds);

 private:
  void send(const Json& order, const std::vector<int>& descriptors = {});
  std::optional<Json> receive(int milliseconds);
  Json answer_to(const Json& order, const char* key, const std::vector<int>& descriptors = {});

  ConfinedProcess process_;
  bool numpy_;
  std::vector<Ended> ended_;
};

class InterpreterPool {
 public:
  // Starts one interpreter as a test; throws InputError if the sandbox is too weak or python is
  // absent.
  explicit InterpreterPool(const CodeGraderOptions& options);

  class Lease {
   public:
    Lease(InterpreterPool& pool, std::unique_ptr<Zygote> zygote)
        : pool_(&pool), zygote_(std::move(zygote)) {}
    Lease(Lease&& other) noexcept = default;
    ~Lease() {
      if (pool_ && zygote_)
        pool_->give_back(std::move(zygote_));
      else if (pool_)
        pool_->give_back(nullptr);
    }
    Zygote& operator*() { return *zygote_; }
    void discard() { zygote_.reset(); }  // it misbehaved

   private:
    struct NoDelete {
      void operator()(InterpreterPool*) const {}
    };
    std::unique_ptr<InterpreterPool, NoDelete> pool_;
    std::unique_ptr<Zygote> zygote_;
  };

  // An interpreter that has loaded numpy, or one that has not and forks faster (numpy can still be
  // imported there). Throws RunError if a new one is needed and does not start.
  Lease acquire(bool numpy);

  const CodeGraderOptions& options() const { return options_; }
  Confinement confinement() const { return confinement_; }
  const Interpreter& interpreter() const { return interpreter_; }

 private:
  void give_back(std::unique_ptr<Zygote> zygote);

  CodeGraderOptions options_;
  Interpreter interpreter_;
  Confinement confinement_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<Zygote>> idle_[2];  // without and with numpy
  int out_ = 0;
};

}  // namespace antisd::inline reward
