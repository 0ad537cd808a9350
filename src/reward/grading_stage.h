// Grading beside sampling, for training, evaluation and `inspect` alike: groups of responses go in
// as they end, are graded on threads of their own, and their verdicts come out group by group.
//
//   GradingStage stage(*grader, {.workers = 2});
//   stage.submit(p, problem, group.responses);        // waits while too many are open
//   for (GradedGroup& done : stage.take_done()) ...   // those that are finished by now
//   for (GradedGroup& done : stage.finish()) ...      // the rest
//
// A truncated response is not looked at: truncated_verdict() says what it is worth.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algo/response.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "reward/grader.h"

namespace antisd::inline reward {

struct GradingOptions {
  int workers = 0;         // 0: one for each core
  std::size_t open = 256;  // responses that may wait or run; submit() waits beyond it
};

struct GradedGroup {
  std::size_t group = 0;          // as it was submitted
  std::vector<Verdict> verdicts;  // one for each response
  std::int64_t asked = 0;         // of the grader: truncated responses are not among them
};

// A reward that is no number from 0 to 1, and the number of the response it was given for.
class BadRewardError : public RunError {
 public:
  BadRewardError(const std::string& what, std::size_t number)
      : RunError(what, {.where = "reward", .remedy = "mend the grader and go on with --resume"}),
        number(number) {}
  const std::size_t number;
};

// What a batch asked of the grader: truncated responses are not among it.
struct GradeCounts {
  std::int64_t asked = 0, graded = 0;
  std::string last_reason;  // why one has no grade
};

class GradingStage {
 public:
  // Borrows the grader.
  explicit GradingStage(Grader& grader, GradingOptions options = {});

  void submit(std::size_t group, const Problem& problem, std::span<const Response> responses);

  // In the order they went in, without waiting. Rethrows the error of a response that cannot be
  // graded at all.
  std::vector<GradedGroup> take_done();
  // Waits for all that is left. Once `stop` says so, only what is done by then comes back: the rest
  // is dropped. Where responses cannot be graded at all, waits too, then rethrows the first error.
  std::vector<GradedGroup> finish(const std::function<bool()>& stop = {});
  // Waits for all, and writes the verdicts into the batch whose groups were submitted by their
  // number. BadRewardError where one is no reward.
  GradeCounts finish(ResponseBatch& batch);

 private:
  struct Open {
    std::size_t group = 0;
    std::vector<std::optional<std::future<Verdict>>> verdicts;  // none: truncated
  };
  static bool is_done(const Open& open);
  static GradedGroup take(Open open);
  Verdict grade(const GradeRequest& request);

  Grader& grader_;
  GradingOptions options_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::size_t open_ = 0;  // responses
  std::deque<Open> groups_;
  std::atomic<bool> dropped_ = false;
  ThreadPool pool_;  // last: its threads use everything above
};

}  // namespace antisd::inline reward
