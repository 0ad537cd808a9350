// Grading in parallel with sampling, for training, evaluation and `inspect`: finished groups of
// responses go in, are graded on separate threads, and their verdicts come out by group.
//
//   GradingStage stage(*grader, {.workers = 2});
//   stage.submit(p, problem, group.responses);        // waits while too many are open
//   for (GradedGroup& done : stage.take_done()) ...   // those finished so far
//   for (GradedGroup& done : stage.finish()) ...      // the rest
//
// A truncated response is not graded: it gets truncated_verdict(). A grader that grades groups
// (Grader::grades_groups) is given the others of a group together.
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
  int workers = 0;         // 0: one per core
  std::size_t open = 256;  // responses that may wait or run; submit() waits above it
  double truncated_reward = 0;
};

struct GradedGroup {
  std::size_t group = 0;          // as submitted
  std::vector<Verdict> verdicts;  // one per response
  std::int64_t asked = 0;         // requests to the grader, without truncated responses
};

// A reward that is not a finite number, and the number of its response.
class BadRewardError : public RunError {
 public:
  BadRewardError(const std::string& what, std::size_t number)
      : RunError(what, {.where = "reward", .remedy = "fix the grader and continue with --resume"}),
        number(number) {}
  const std::size_t number;
};

// Counts of a batch's requests to the grader, without truncated responses.
struct GradeCounts {
  std::int64_t asked = 0, graded = 0;
  std::string last_reason;  // why one has no grade
};

class GradingStage {
 public:
  // Borrows the grader.
  explicit GradingStage(Grader& grader, GradingOptions options = {});

  void submit(std::size_t group, const Problem& problem, std::span<const Response> responses);

  // In the order they were submitted, without waiting. Rethrows the error of a response that cannot
  // be graded at all.
  std::vector<GradedGroup> take_done();
  // Waits for the rest. Once `stop` returns true, only finished groups are returned and the rest is
  // dropped. If responses cannot be graded at all, waits too, then rethrows the first error.
  std::vector<GradedGroup> finish(const std::function<bool()>& stop = {});
  // Waits for all and writes the verdicts into the batch whose groups were submitted by their
  // number. BadRewardError if one is not a valid reward.
  GradeCounts finish(ResponseBatch& batch);

 private:
  struct Open {
    std::size_t group = 0;
    std::vector<std::optional<std::future<Verdict>>> verdicts;  // nothing: truncated
  };
  static bool is_done(const Open& open);
  GradedGroup take(Open open) const;
  void wait_for_room(std::size_t responses);
  std::future<Verdict> submit_one(GradeRequest request);
  std::vector<std::future<Verdict>> submit_group(std::vector<GradeRequest> requests);
  void leave(std::size_t responses);

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
