// The memory that a training step needs, by part, from the model's shape.
//
//   const MemoryPlan plan = plan_memory(shape, config, method, device, dtype);
//   for (const MemoryPart& part : plan.parts) print(part.name, part.bytes);
//   if (plan.needed() > available_memory(device)) ...
//
// Permanent tensors are counted to the byte, without the gaps between parameters (kPieceElements).
// What a pass keeps is an estimate: allocators round, and libraries have their own workspaces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "algo/method.h"
#include "config/run_config.h"
#include "model/model_shape.h"

namespace antisd::inline trainer {

enum class MemoryTime { kAlways, kRollout, kUpdate };

struct MemoryPart {
  std::string name;
  double bytes = 0;
  MemoryTime when = MemoryTime::kAlways;
  std::string how;  // "2 bytes per parameter"
};

struct MemoryPlan {
  std::vector<MemoryPart> parts;
  double kv_least = 0;  // for one sequence at a time; the part is for the maximum number

  double total(MemoryTime when) const;
  // The larger of: sampling with the smallest cache that the engine accepts, and the update.
  double needed() const;
};

MemoryPlan plan_memory(const ModelShape& shape, const RunConfig& config, const Method& method,
                       at::Device device, at::ScalarType dtype);

}  // namespace antisd::inline trainer
