#include "reward/grading_stage.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "core/check.h"

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
  std::vector<GradeRequest> together;
  for (const Response& response : responses) {
    open.verdicts.emplace_back();
    if (response.truncated()) continue;
    GradeRequest request = grade_request(problem, response);
    if (grader_.grades_groups())
      together.push_back(std::move(request));
    else
      open.verdicts.back() = submit_one(std::move(request));
  }
  if (!together.empty()) {
    std::vector<std::future<Verdict>> found = submit_group(std::move(together));
    for (std::size_t i = 0, next = 0; i < responses.size(); ++i)
      if (!responses[i].truncated()) open.verdicts[i] = std::move(found[next++]);
  }
  groups_.push_back(std::move(open));
}

void GradingStage::wait_for_room(std::size_t responses) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return open_ < options_.open; });
  open_ += responses;
}

void GradingStage::leave(std::size_t responses) {
  const std::lock_guard lock(mutex_);
  open_ -= responses;
  room_.notify_one();
}

std::future<Verdict> GradingStage::submit_one(GradeRequest request) {
  wait_for_room(1);
  return pool_.submit([this, request = std::move(request)] {
    // Frees the place even if the grader throws.
    struct Leave {
      GradingStage& stage;
      ~Leave() { stage.leave(1); }
    } leave{*this};
    return dropped_ ? Verdict() : grader_.grade(request);
  });
}

// One task that answers for all: what it throws, each response has.
std::vector<std::future<Verdict>> GradingStage::submit_group(std::vector<GradeRequest> requests) {
  const auto promises = std::make_shared<std::vector<std::promise<Verdict>>>(requests.size());
  std::vector<std::future<Verdict>> futures;
  for (std::promise<Verdict>& promise : *promises)
    futures.push_back(promise.get_future());
  wait_for_room(requests.size());
  pool_.submit([this, promises, requests = std::move(requests)] {
    std::vector<Verdict> verdicts(requests.size());
    std::exception_ptr error;
    try {
      if (!dropped_) verdicts = grader_.grade_group(requests);
      ANTISD_CHECK_EQ(verdicts.size(), requests.size());
    } catch (...) {
      error = std::current_exception();
    }
    leave(requests.size());
    for (std::size_t i = 0; i < promises->size(); ++i) {
      if (error)
        (*promises)[i].set_exception(error);
      else
        (*promises)[i].set_value(std::move(verdicts[i]));
    }
  });
  return futures;
}

bool GradingStage::is_done(const Open& open) {
  return std::ranges::all_of(open.verdicts, [](const std::optional<std::future<Verdict>>& verdict) {
    return !verdict || verdict->wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
}

GradedGroup GradingStage::take(Open open) const {
  GradedGroup graded{.group = open.group, .verdicts = {}};
  for (std::optional<std::future<Verdict>>& verdict : open.verdicts) {
    graded.asked += verdict.has_value();
    graded.verdicts.push_back(verdict ? verdict->get()
                                      : truncated_verdict(options_.truncated_reward));
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
      if (!verdict.usable())
        throw BadRewardError(fmt::format("a reward is {}, not a finite number", *verdict.reward),
                             number);
      counts.graded += !verdict.failed() && !responses[i].truncated();
      if (verdict.failed()) counts.last_reason = verdict.reason;
      responses[i].verdict = std::move(verdict);
    }
  }
  return counts;
}

}  // namespace antisd::inline reward
