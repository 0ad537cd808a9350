#include "cli/weights/step_threads.h"

#include <ATen/Parallel.h>

#include "core/thread_pool.h"

namespace antisd::inline cli {

StepThreads::StepThreads(int asked) {
  if (asked == 0) governor_.emplace(unclaimed_threads(available_threads()), available_threads());
  at::set_num_threads(governor_ ? governor_->threads() : asked);
}

void StepThreads::between_steps() {
  if (!governor_) return;
  governor_->observe();
  if (governor_->threads() != at::get_num_threads()) at::set_num_threads(governor_->threads());
}

}  // namespace antisd::inline cli
