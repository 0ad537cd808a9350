#include "reward/grading_stage.h"

#include <algorithm>
#include <chrono>

namespace antisd {

GradingStage::GradingStage(Grader& grader, GradingOptions options)
    : grader_(grader),
      options_(std::move(options)),
      pool_(options_.workers > 0 ? options_.workers : available_threads()) {
  options_.open = std::max<std::size_t>(options_.open, 1);
}

void GradingStage::submit(GradeRequest request) {
  {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return open_ < options_.open; });
    ++open_;
    ++submitted_;
  }
  results_.push_back(pool_.submit([this, request = std::move(request)] {
    // The place is given back also where the grader throws.
    struct Leave {
      GradingStage& stage;
      ~Leave() {
        const std::lock_guard lock(stage.mutex_);
        --stage.open_;
        stage.room_.notify_one();
      }
    } leave{*this};
    return grade(request);
  }));
}

Score GradingStage::grade(const GradeRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  Score score = grader_.score(request);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::lock_guard lock(mutex_);
  ++statistics_.graded;
  statistics_.seconds += seconds;
  statistics_.slowest_s = std::max(statistics_.slowest_s, seconds);
  if (!score.reward) ++statistics_.undecided[score.reason];
  if (options_.progress) options_.progress(statistics_.graded, submitted_);
  return score;
}

std::vector<Score> GradingStage::finish() {
  std::vector<Score> scores;
  std::exception_ptr error;
  for (std::future<Score>& result : results_) {
    try {
      scores.push_back(result.get());
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  results_.clear();
  if (error) std::rethrow_exception(error);
  return scores;
}

GradingStatistics GradingStage::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace antisd
