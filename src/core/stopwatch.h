// Wall-clock seconds between laps.
#pragma once

#include <chrono>

namespace antisd::inline core {

class Stopwatch {
 public:
  double lap() {  // seconds since the last lap, or since the start
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace antisd::inline core
