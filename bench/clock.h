// Seconds between laps, for benchmarks: wall-clock time, or processor time of this process.
// Processor time on one thread is the figure to compare when other programs share the machine.
#pragma once

#include <chrono>
#include <ctime>
#include <string>

#include <ATen/ATen.h>

namespace antisd::bench {

class Clock {
 public:
  explicit Clock(at::Device device, bool processor_time = false)
      : probe_(at::zeros({1}, device)), processor_time_(processor_time) {
    lap();
  }

  // Seconds since the last lap; synchronises with the device by reading a number from it.
  double lap() {
    if (probe_.is_cuda()) probe_.item<float>();
    const double now = seconds();
    const double passed = now - last_;
    last_ = now;
    return passed;
  }

 private:
  double seconds() const {
    if (processor_time_) {
      timespec time{};
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
  }

  at::Tensor probe_;
  bool processor_time_;
  double last_ = 0;
};

// The best of `repeats` runs after a warm-up run.
template <typename Work>
double best_time(at::Device device, bool processor_time, int repeats, Work&& work) {
  double best = 0;
  for (int i = 0; i <= repeats; ++i) {
    Clock clock(device, processor_time);
    work();
    const double seconds = clock.lap();
    if (i == 1 || (i > 1 && seconds < best)) best = seconds;
  }
  return best;
}

}  // namespace antisd::bench
