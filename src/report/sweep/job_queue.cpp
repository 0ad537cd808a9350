#include "report/sweep/job_queue.h"

#include <algorithm>
#include <csignal>

#include "core/check.h"

namespace antisd::inline report {
namespace {

constexpr int kStoppedStatus = 130;
constexpr int kEndedByOurSignal = 128 + SIGTERM;  // the program had not yet installed its handler

JobState state_after(int exit_status, bool stopping) {
  if (exit_status == 0) return JobState::kDone;
  const bool stopped =
      exit_status == kStoppedStatus || (stopping && exit_status == kEndedByOurSignal);
  return stopped ? JobState::kStopped : JobState::kFailed;
}

}  // namespace

bool fits(std::int64_t running, std::int64_t peak, std::int64_t memory_bytes) {
  if (running == 0 || memory_bytes == 0) return true;
  return peak > 0 && (running + 1) * peak <= memory_bytes;
}

JobQueue::JobQueue(std::vector<JobSpec> specs, JobLimits limits) : limits_(limits) {
  ANTISD_CHECK(limits.jobs >= 1);
  for (JobSpec& spec : specs)
    jobs_.push_back({.spec = std::move(spec)});
  processes_.resize(jobs_.size());
}

bool JobQueue::advance() {
  collect();
  note_memory();
  if (!stopping_) start_what_fits();
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const Job& job) {
    return job.state == JobState::kRunning || (job.state == JobState::kWaiting && !stopping_);
  });
}

void JobQueue::stop() {
  stopping_ = true;
  for (const auto& process : processes_) {
    if (process) process->stop();
  }
}

void JobQueue::collect() {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (!processes_[i]) continue;
    const std::optional<int> status = processes_[i]->exit_status();
    if (!status) continue;
    jobs_[i].exit_status = *status;
    jobs_[i].state = state_after(*status, stopping_);
    processes_[i].reset();
  }
}

void JobQueue::note_memory() {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    std::error_code ignored;
    if (processes_[i] && std::filesystem::file_size(jobs_[i].spec.sign_of_life, ignored) > 0 &&
        !ignored)
      peak_bytes_ = std::max(peak_bytes_, processes_[i]->peak_bytes());
  }
}

void JobQueue::start_what_fits() {
  auto running = std::count_if(jobs_.begin(), jobs_.end(),
                               [](const Job& job) { return job.state == JobState::kRunning; });
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].state != JobState::kWaiting) continue;
    if (running >= limits_.jobs || !fits(running, peak_bytes_, limits_.memory_bytes)) return;
    processes_[i] = std::make_unique<ChildProcess>(jobs_[i].spec.arguments, jobs_[i].spec.output);
    jobs_[i].state = JobState::kRunning;
    ++running;
  }
}

}  // namespace antisd::inline report
