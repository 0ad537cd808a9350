// What one grade may spend. Every loop and recursion of the math grader counts its steps here, so
// that no text, however built, keeps a worker longer than the stated milliseconds.
#pragma once

#include <chrono>
#include <cstdint>

#include "reward/math_number.h"

namespace antisd::math {

inline constexpr int kMaxDepth = 120;              // of nested brackets, braces and powers
inline constexpr std::size_t kMaxAnswerBytes = 20'000;  // longer answers are not parsed

class Budget {
 public:
  explicit Budget(int milliseconds)
      : deadline_(std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds)) {}

  // `cost` is in rough microseconds; the clock is read once every 200 of them.
  void spend(int cost = 1) {
    since_check_ += cost;
    if (since_check_ < 200) return;
    since_check_ = 0;
    if (std::chrono::steady_clock::now() > deadline_) throw BudgetExceeded("out of time");
  }

 private:
  std::chrono::steady_clock::time_point deadline_;
  int since_check_ = 0;
};

}  // namespace antisd::math
