// How much of the disk a run's checkpoints need, from the model's shape alone.
//
//   const DiskPlan plan = plan_disk(shape, config, dtype, method.slow_teacher(), state.step);
//   recorder.info(plan.text());
//   if (!plan.suffices()) recorder.warn(plan.warning());
//
// Tensors are counted to the byte; rollouts, evaluations and logs are not counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/ScalarType.h>

#include "config/run_config.h"
#include "model/model_shape.h"

namespace antisd::inline run {

struct DiskPlan {
  double checkpoint_bytes = 0;   // of one
  std::int64_t checkpoints = 0;  // that come on top of those there now, the one being written too
  std::string folder;            // of the run, or the nearest one above it that exists
  std::optional<double> free;    // bytes there for this user; nothing where the system does not say

  double needed() const { return checkpoint_bytes * static_cast<double>(checkpoints); }
  bool suffices() const { return !free || needed() <= *free; }
  std::string text() const;     // "3 checkpoints of 1.20 GiB: 3.60 GiB; runs has 20.00 GiB free"
  std::string warning() const;  // the same with the remedy
};

// `step`: so many steps are done already.
DiskPlan plan_disk(const ModelShape& shape, const RunConfig& config, at::ScalarType dtype,
                   bool slow_teacher, std::int64_t step = 0);

}  // namespace antisd::inline run
