#include "reward/grading_stage.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace antisd::inline reward {

GradingStage::GradingStage(Grader& grader, GradingOptions options)
    : grader_(grader),
      options_(options),
      pool_(options_.workers > 0 ? options_.workers : available_threads()) {
  options_.open = std::max<std::size_t>(options_.open, 1);
}

void GradingStage::submit(std::size_t group, const Problem& problem,
                          std::span<const Response> responses) {
  Open open{.group = group, .verdicts = {}};
  for (const Response& response : responses) {
    if (response.truncated()) {
      open.verdicts.emplace_back();
      continue;
    }
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [this] { return open_ < options_.open; });
      ++open_;
    }
    open.verdicts.emplace_back(pool_.submit(
        [this, request = grade_request(problem, response.text)] { return grade(request); }));
  }
  groups_.push_back(std::move(open));
}

Verdict GradingStage::grade(const GradeRequest& request) {
  // Frees the place even if the grader throws.
  struct Leave {
    GradingStage& stage;
    ~Leave() {
      const std::lock_guard lock(stage.mutex_);
      --stage.open_;
      stage.room_.notify_one();
    }
  } leave{*this};
  return dropped_ ? Verdict() : grader_.grade(request);
}

bool GradingStage::is_done(const Open& open) {
  return std::ranges::all_of(open.verdicts, [](const std::optional<std::future<Verdict>>& verdict) {
    return !verdict || verdict->wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
}

GradedGroup GradingStage::take(Open open) {
  GradedGroup graded{.group = open.group, .verdicts = {}};
  for (std::optional<std::future<Verdict>>& verdict : open.verdicts) {
    graded.asked += verdict.has_value();
    graded.verdicts.push_back(verdict ? verdict->get() : truncated_verdict());
  }
  return graded;
}

std::vector<GradedGroup> GradingStage::take_done() {
  std::vector<GradedGroup> done;
  for (auto at = groups_.begin(); at != groups_.end();) {
    if (!is_done(*at)) {
      ++at;
      continue;
    }
    Open open = std::move(*at);
    at = groups_.erase(at);
    done.push_back(take(std::move(open)));
  }
  return done;
}

std::vector<GradedGroup> GradingStage::finish(const std::function<bool()>& stop) {
  std::vector<GradedGroup> done;
  std::exception_ptr error;
  while (!groups_.empty()) {
    if (stop && stop()) {
      std::ranges::move(take_done(), std::back_inserter(done));
      dropped_ = true;  // pending requests in the pool are no longer graded
      groups_.clear();
      break;
    }
    if (stop && !is_done(groups_.front())) {
      for (const auto& verdict : groups_.front().verdicts) {
        if (verdict &&
            verdict->wait_for(std::chrono::milliseconds(20)) != std::future_status::ready)
          break;
      }
      continue;
    }
    Open oldest = std::move(groups_.front());
    groups_.pop_front();
    try {
      done.push_back(take(std::move(oldest)));
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
  return done;
}

GradeCounts GradingStage::finish(ResponseBatch& batch) {
  GradeCounts counts;
  for (GradedGroup& done : finish()) {
    counts.asked += done.asked;
    std::vector<Response>& responses = batch.groups[done.group].responses;
    for (std::size_t i = 0; i < done.verdicts.size(); ++i) {
      Verdict& verdict = done.verdicts[i];
      const std::size_t number = done.group * batch.group_size() + i;
      if (verdict.error) throw BadRewardError(verdict.reason, number);
      if (!verdict.in_range())
        throw BadRewardError(fmt::format("a reward is {}, not 0 to 1", *verdict.reward), number);
      counts.graded += !verdict.failed() && !responses[i].truncated();
      if (verdict.failed()) counts.last_reason = verdict.reason;
      responses[i].verdict = std::move(verdict);
    }
  }
  return counts;
}

}  // namespace antisd::inline reward
