// The tensor library's threads in a command that works in steps: --threads, or as many as the
// machine has free.
//
//   StepThreads threads(options.threads);
//   trainer.run([&] { threads.between_steps(); return stop(); });
#pragma once

#include <optional>

#include "core/thread_governor.h"

namespace antisd::inline cli {

class StepThreads {
 public:
  explicit StepThreads(int asked);  // 0: chosen automatically
  void between_steps();             // call it on the working thread

 private:
  std::optional<ThreadGovernor> governor_;
};

}  // namespace antisd::inline cli
