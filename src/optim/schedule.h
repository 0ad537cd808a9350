// The learning rate of each step: linear warm-up, then constant, or falling to 0 at the end.
//
//   const Schedule schedule = make_schedule(config.optim, config.train.steps);
//   const double lr = schedule.at(state.step);
#pragma once

#include <cstdint>

#include "config/run_config.h"

namespace antisd::inline optim {

struct Schedule {
  enum class Kind { kConstant, kCosine, kLinear };
  Kind kind = Kind::kConstant;
  double lr = 1e-6;  // the highest
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;  // warm-up included; the constant schedule has no end

  // Of step `step`, from 0. Warm-up's first step has lr / warmup_steps and its last one lr; the
  // step after the last would be the first at 0: no step of the run is spent on nothing.
  double at(std::int64_t step) const;
};

// InputError where optim.schedule names no schedule.
Schedule make_schedule(const OptimConfig& config, std::int64_t total_steps);

}  // namespace antisd::inline optim
