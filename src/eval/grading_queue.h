// Groups of samples on their way through a grader: graded on threads of their own while others are
// sampled, handed over group by group as they are done.
//
//   GradingQueue queue(*grader, workers, [&](std::vector<SampleRow> rows) { file.add(rows); });
//   queue.submit(problem, std::move(rows));   // also hands over what is done by now
//   queue.finish();
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "data/problem.h"
#include "eval/results/sample_row.h"
#include "reward/grader.h"

namespace antisd {

// What a grader is asked about a problem.
GradeRequest request_of(const Problem& problem, std::string response);

class GradingQueue {
 public:
  using OnGroup = std::function<void(std::vector<SampleRow>)>;

  // Borrows the grader, which may be called from `workers` threads.
  GradingQueue(Grader& grader, int workers, OnGroup on_group);

  // Rows of one problem that lack a verdict. Waits while too many are open. Rethrows the error of a
  // request that cannot be graded at all.
  void submit(const Problem& problem, std::vector<SampleRow> rows);
  void hand_over();  // the groups that are done, without waiting
  // All of them; once `stop` says so, only those that are done by then: the rest is dropped.
  void finish(const std::function<bool()>& stop = {});

 private:
  struct Group {
    std::vector<SampleRow> rows;
    std::vector<std::pair<std::size_t, std::future<Score>>> scores;  // row and its score
  };
  static bool is_done(const Group& group);
  void hand_over(Group group);

  Grader& grader_;
  OnGroup on_group_;
  std::deque<Group> open_;
  std::size_t open_scores_ = 0;
  std::atomic<bool> dropped_ = false;
  ThreadPool pool_;  // last: its threads use everything above
};

}  // namespace antisd
