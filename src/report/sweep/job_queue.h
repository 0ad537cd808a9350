// Runs programs in parallel within limits, in their order.
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
  std::filesystem::path output;        // receives its output
  // Exists once the job has run far enough to show its memory use.
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

// Whether another job fits beside `running` ones if a job takes at most `peak` bytes (0: unknown,
// so the first one runs by itself until it is known).
bool fits(std::int64_t running, std::int64_t peak, std::int64_t memory_bytes);

class JobQueue {
 public:
  JobQueue(std::vector<JobSpec> specs, JobLimits limits);

  // Notes what has ended and starts what may start. False when nothing runs or waits.
  bool advance();
  // Starts no more jobs and asks the running ones to stop; when called again: to stop at once.
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
