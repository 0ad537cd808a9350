// Grading beside sampling: requests go in as responses end, are graded on threads of their own, and
// come out in the order they went in, whatever finished first.
//
//   GradingStage stage(*grader, {.workers = 2});
//   for (const Rollout& rollout : finished) stage.submit(request_of(rollout));   // waits while too
//   many are open const std::vector<Score> scores = stage.finish();
//   log(stage.statistics().undecided);   // reason -> how many
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "reward/grader.h"

namespace antisd {

struct GradingOptions {
  int workers = 0;         // 0: one for each core
  std::size_t open = 256;  // requests that may wait or run; submit() blocks beyond it
  std::function<void(std::int64_t done, std::int64_t submitted)>
      progress;  // called after each grade, one at a time
};

struct GradingStatistics {
  std::int64_t graded = 0;
  double seconds = 0;  // summed over the grades
  double slowest_s = 0;
  std::map<std::string, std::int64_t> undecided;  // by reason
};

class GradingStage {
 public:
  // Borrows the grader.
  explicit GradingStage(Grader& grader, GradingOptions options = {});

  void submit(GradeRequest request);
  // The scores of everything submitted since the last finish(), in order. Rethrows the error of the
  // first request that could not be graded at all.
  std::vector<Score> finish();

  GradingStatistics statistics() const;

 private:
  Score grade(const GradeRequest& request);

  Grader& grader_;
  GradingOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::size_t open_ = 0;
  std::int64_t submitted_ = 0;
  GradingStatistics statistics_;
  std::deque<std::future<Score>> results_;
  ThreadPool pool_;  // last: its threads use everything above
};

}  // namespace antisd
