// The learning rate of each step: linear warm-up, then constant, or decaying to 0 at the end.
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

  // The learning rate of step `step`, from 0. The first warm-up step has lr / warmup_steps, the
  // last one lr. The rate would reach 0 one step after the last, so no step of the run has rate 0.
  double at(std::int64_t step) const;
};

// InputError where optim.schedule names no schedule.
Schedule make_schedule(const OptimConfig& config, std::int64_t total_steps);

}  // namespace antisd::inline optim
