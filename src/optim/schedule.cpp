#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace antisd::inline optim {

double Schedule::at(std::int64_t step) const {
  if (step < warmup_steps) {
    return lr * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  }
  if (kind == Kind::kConstant) return lr;
  const auto length = static_cast<double>(std::max<std::int64_t>(total_steps - warmup_steps, 1));
  const double progress = std::min(static_cast<double>(step - warmup_steps) / length, 1.0);
  if (kind == Kind::kLinear) return lr * (1 - progress);
  return lr * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

Schedule make_schedule(const OptimConfig& config, std::int64_t total_steps) {
  Schedule schedule{
      .lr = config.lr, .warmup_steps = config.warmup_steps, .total_steps = total_steps};
  if (config.schedule == "constant") {
    schedule.kind = Schedule::Kind::kConstant;
  } else if (config.schedule == "cosine") {
    schedule.kind = Schedule::Kind::kCosine;
  } else if (config.schedule == "linear") {
    schedule.kind = Schedule::Kind::kLinear;
  } else {
    throw InputError("no schedule is called \"" + config.schedule + "\"",
                     {.where = "optim.schedule", .remedy = "use constant, cosine or linear"});
  }
  return schedule;
}

}  // namespace antisd::inline optim
