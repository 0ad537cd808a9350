// Runs programs side by side within limits, in their order.
//
//   JobQueue queue(jobs, {.jobs = 2});
//   while (queue.advance()) { show(queue.jobs()); wait_a_little(); if (stop) queue.stop(); }
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "report/sweep/child_process.h"

namespace antisd::inline report {

struct JobSpec {
  std::string name;
  std::vector<std::string> arguments;  // the program first
  std::filesystem::path output;        // what it prints
  // There once the job has done enough to show how much memory it takes.
  std::filesystem::path sign_of_life;
};

enum class JobState { kWaiting, kRunning, kDone, kStopped, kFailed };

struct Job {
  JobSpec spec;
  JobState state = JobState::kWaiting;
  int exit_status = 0;
};

struct JobLimits {
  int jobs = 1;                   // at a time
  std::int64_t memory_bytes = 0;  // of all together; 0: no limit
};

// Whether one more fits beside `running` others, when a job takes at most `peak` bytes as far as is
// known (0: nothing is known, so that the first one runs alone until it is).
bool fits(std::int64_t running, std::int64_t peak, std::int64_t memory_bytes);

class JobQueue {
 public:
  JobQueue(std::vector<JobSpec> specs, JobLimits limits);

  // Takes note of what has ended and starts what may start. False when nothing runs or waits.
  bool advance();
  // Nothing more is started, and what runs is asked to stop; again: to stop at once.
  void stop();

  const std::vector<Job>& jobs() const { return jobs_; }

 private:
  void collect();
  void start_what_fits();
  void note_memory();

  JobLimits limits_;
  std::vector<Job> jobs_;
  std::vector<std::unique_ptr<ChildProcess>> processes_;  // one per job while it runs
  std::int64_t peak_bytes_ = 0;                           // of any job that showed it
  bool stopping_ = false;
};

}  // namespace antisd::inline report
