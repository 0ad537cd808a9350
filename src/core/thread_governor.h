// How many threads are worth having on a machine that others use too. Threads that share a step
// meet many times a millisecond; where one of them waits for a core, all of them do.
//
//   ThreadGovernor governor(unclaimed_threads(available_threads()), available_threads());
//   while (!done()) {
//     set_threads(governor.threads());
//     step();
//     governor.observe();  // halves them where they had to wait for cores, else tries more
//   }
//
// Only for work whose result does not depend on the number of threads.
#pragma once

#include <functional>
#include <optional>

namespace antisd::inline core {

// Of all threads of this process since they began, in seconds.
struct CpuTimes {
  double running = 0;
  double waiting = 0;  // ready to run, without a core
};

// Nothing where the kernel does not count.
std::optional<CpuTimes> own_cpu_times();

// Of `most` threads, those for which a core is free just now: other programs' running threads
// take theirs first. At least 1.
int unclaimed_threads(int most);

class ThreadGovernor {
 public:
  using Times = std::function<std::optional<CpuTimes>()>;
  ThreadGovernor(int start, int most, Times times = own_cpu_times);

  int threads() const { return threads_; }
  // After each step. More threads are tried at once after a quiet step, then ever more rarely where
  // that failed.
  void observe();

 private:
  Times times_;
  int most_;
  int threads_;
  int patience_ = 1;  // quiet steps before more threads are tried again, once that has failed
  int left_ = 0;      // of them
  std::optional<CpuTimes> before_;
};

}  // namespace antisd::inline core
