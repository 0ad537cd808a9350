// How many threads to use on a machine that is shared with other programs. Threads that share a
// step synchronise many times per millisecond; when one waits for a core, all of them wait.
//
//   ThreadGovernor governor(unclaimed_threads(available_threads()), available_threads());
//   while (!done()) {
//     set_threads(governor.threads());
//     step();
//     governor.observe();  // halves them if they waited for cores, else tries more
//   }
//
// Only for work whose result does not depend on the number of threads.
#pragma once

#include <functional>
#include <optional>

namespace antisd::inline core {

// Times of all threads of this process since they started, in seconds.
struct CpuTimes {
  double running = 0;
  double waiting = 0;  // ready to run, without a core
};

// Nothing where the kernel does not report them.
std::optional<CpuTimes> own_cpu_times();

// How many of `most` threads have a free core now, after the running threads of other programs. At
// least 1.
int unclaimed_threads(int most);

class ThreadGovernor {
 public:
  using Times = std::function<std::optional<CpuTimes>()>;
  ThreadGovernor(int start, int most, Times times = own_cpu_times);

  int threads() const { return threads_; }
  // Call it after each step. After a step without waiting it tries more threads; each time that
  // fails, it waits longer before it tries again.
  void observe();

 private:
  Times times_;
  int most_;
  int threads_;
  int patience_ = 1;  // steps without waiting before more threads are tried again
  int left_ = 0;      // of patience_
  std::optional<CpuTimes> before_;
};

}  // namespace antisd::inline core
