#include "eval/grading_queue.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"

namespace antisd {
namespace {

constexpr std::size_t kMostOpen = 1024;  // scores; beyond it sampling waits

}  // namespace

GradingQueue::GradingQueue(Grader& grader, int workers, OnGroup on_group)
    : grader_(grader), on_group_(std::move(on_group)), pool_(std::max(workers, 1)) {}

GradeRequest request_of(const Problem& problem, std::string response) {
  return {.response = std::move(response),
          .answer = problem.answer,
          .tests = problem.tests,
          .problem = prompt_text(problem)};
}

void GradingQueue::submit(const Problem& problem, std::vector<SampleRow> rows) {
  while (open_scores_ > kMostOpen) {
    Group oldest = std::move(open_.front());
    open_.pop_front();
    hand_over(std::move(oldest));
  }
  Group group{.rows = std::move(rows), .scores = {}};
  for (std::size_t i = 0; i < group.rows.size(); ++i) {
    SampleRow& row = group.rows[i];
    if (row.truncated) {  // wrong whatever it says; it is not looked at
      row.correct = false;
      row.reason = "truncated";
      continue;
    }
    GradeRequest request = request_of(problem, row.response);
    group.scores.emplace_back(i, pool_.submit([this, request = std::move(request)] {
      return dropped_ ? Score() : grader_.score(request);
    }));
  }
  open_scores_ += group.scores.size();
  open_.push_back(std::move(group));
  hand_over();
}

bool GradingQueue::is_done(const Group& group) {
  return std::all_of(group.scores.begin(), group.scores.end(), [](const auto& score) {
    return score.second.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
}

void GradingQueue::hand_over() {
  for (std::size_t i = 0; i < open_.size();) {
    if (!is_done(open_[i])) {
      ++i;
      continue;
    }
    Group group = std::move(open_[i]);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
    hand_over(std::move(group));
  }
}

void GradingQueue::hand_over(Group group) {
  open_scores_ -= group.scores.size();
  for (auto& [i, future] : group.scores) {
    Score score = future.get();
    SampleRow& row = group.rows[i];
    if (score.reward && !(*score.reward >= 0 && *score.reward <= 1)) {
      throw RunError(
          fmt::format("the reward of problem '{}', sample {} is {}", row.id, row.sample,
                      *score.reward),
          {.where = "reward", .remedy = "a reward lies between 0 and 1; mend the grader"});
    }
    if (score.reward) row.correct = *score.reward == 1;
    row.reason = std::move(score.reason);
    row.extracted = std::move(score.extracted);
  }
  on_group_(std::move(group.rows));
}

void GradingQueue::finish(const std::function<bool()>& stop) {
  while (!open_.empty()) {
    if (stop && stop()) {
      hand_over();
      dropped_ = true;  // what waits in the pool is not graded any more
      open_.clear();
      return;
    }
    if (!is_done(open_.front())) {
      for (auto& [i, score] : open_.front().scores)
        if (score.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) break;
      continue;
    }
    Group oldest = std::move(open_.front());
    open_.pop_front();
    hand_over(std::move(oldest));
  }
}

}  // namespace antisd
