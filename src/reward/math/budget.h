// Limits on the cost of one grade. Every loop and recursion of the math grader counts its steps
// here, so that no text keeps a worker longer than the stated milliseconds.
#pragma once

#include <ctime>

#include "reward/math/number.h"

namespace antisd::inline reward::math {

inline constexpr int kMaxDepth = 120;                   // of nested brackets, braces and powers
inline constexpr std::size_t kMaxAnswerBytes = 10'000;  // longer answers are not parsed

// Counted in steps of roughly a microsecond, so that the same texts give the same verdict on every
// machine and under every load; the thread's own clock is a second limit, for steps that cost more
// than counted.
class Budget {
 public:
  explicit Budget(int milliseconds)
      : steps_(milliseconds * kStepsPerMillisecond),
        limit_(cpu_time() + milliseconds * 700'000LL) {}

  void spend(int cost = 1) {
    steps_ -= cost;
    if (steps_ < 0) throw BudgetExceeded("out of time");
    since_check_ += cost;
    if (since_check_ < 1000) return;
    since_check_ = 0;
    if (cpu_time() > limit_) throw BudgetExceeded("out of time");
  }

 private:
  static constexpr int kStepsPerMillisecond = 400;

  static long long cpu_time() {  // of this thread, in nanoseconds
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
  }

  int steps_;
  long long limit_;
  int since_check_ = 0;
};

}  // namespace antisd::inline reward::math
