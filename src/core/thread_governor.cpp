#include "core/thread_governor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include <unistd.h>

namespace antisd::inline core {
namespace {

namespace fs = std::filesystem;

// Share of the time in which threads were ready but had no core. On idle cores it is below 2 %.
constexpr double kCrowded = 0.2;
constexpr double kRoomy = 0.05;
constexpr int kMostPatience = 64;  // steps

// Threads of all programs that run or are ready to, including this one.
std::optional<int> running_threads() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("procs_running ")) return std::atoi(line.c_str() + 14);
  }
  return std::nullopt;
}

}  // namespace

std::optional<CpuTimes> own_cpu_times() {
  CpuTimes times;
  bool counted = false;
  std::error_code error;
  for (const fs::directory_entry& task : fs::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(task.path() / "schedstat");  // absent if the thread has just ended
    double running = 0, waiting = 0;                // nanoseconds
    if (!(file >> running >> waiting)) continue;
    counted = true;
    times.running += running * 1e-9;
    times.waiting += waiting * 1e-9;
  }
  return counted ? std::optional(times) : std::nullopt;
}

int unclaimed_threads(int most) {
  if (most <= 1) return 1;
  std::array<int, 5> samples = {};  // a single sample is too noisy
  for (int& sample : samples) {
    const std::optional<int> running = running_threads();
    if (!running) return most;
    sample = *running;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::nth_element(samples.begin(), samples.begin() + 2, samples.end());
  const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return std::clamp(cores - (samples[2] - 1), 1, most);
}

ThreadGovernor::ThreadGovernor(int start, int most, Times times)
    : times_(std::move(times)), most_(std::max(most, 1)), threads_(std::clamp(start, 1, most_)) {
  before_ = times_();
}

void ThreadGovernor::observe() {
  const std::optional<CpuTimes> now = times_(), before = std::exchange(before_, now);
  if (!now || !before) return;
  // The times of a thread that ended are no longer counted, so a sum can fall.
  const double running = std::max(now->running - before->running, 0.0);
  const double waiting = std::max(now->waiting - before->waiting, 0.0);
  if (running + waiting <= 0) return;
  const double share = waiting / (running + waiting);
  if (share > kCrowded && threads_ > 1) {
    threads_ /= 2;
    left_ = patience_;
    patience_ = std::min(2 * patience_, kMostPatience);
  } else if (share < kRoomy && threads_ < most_) {
    if (left_-- > 0) return;
    left_ = 0;
    threads_ = std::min(2 * threads_, most_);
  } else if (share < kRoomy) {
    patience_ = 1;
  }
}

}  // namespace antisd::inline core
