// Peaks of memory by the phases of a step.
//
//   MemoryPeaks memory(model.device());
//   work();
//   const std::optional<double> of_work = memory.lap();  // GiB
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace antisd::inline trainer {

class MemoryPeaks {
 public:
  explicit MemoryPeaks(at::Device device) : device_(device) {}

  // Of tensors on a GPU, in GiB, since the last call; nothing for a CPU, whose peak cannot be
  // reset.
  std::optional<double> lap();

  // In GiB since the process began: of tensors on a GPU, of the whole process on a CPU.
  double most();

 private:
  at::Device device_;
  double most_ = 0;
};

}  // namespace antisd::inline trainer
