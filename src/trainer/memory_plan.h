// The memory that a training step needs on each rank, by part and phase, from the model's shape.
//
//   const MemoryPlan plan =
//       plan_memory(shape, config, method, device, dtype, {16, 16, Shard::kWeights});
//   for (const MemoryPart& part : plan.parts) print(part.name, part.bytes);
//   if (plan.needed() > available_memory(device)) ...
//
// Permanent tensors, gradients and their sums are counted to the byte, with the gaps between
// parameters (kPieceElements), on the rank that holds most. What a pass keeps is an estimate:
// allocators round, and libraries have their own workspaces. The parts of the update are those of
// the moment that needs most.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "algo/method.h"
#include "config/run_config.h"
#include "model/model_shape.h"
#include "trainer/holdings.h"

namespace antisd::inline trainer {

enum class MemoryTime { kAlways, kRollout, kScoring, kUpdate };
const char* phase_name(MemoryTime when);  // "always", "sampling", "scoring", "update"

struct MemoryPart {
  std::string name;
  double bytes = 0;
  MemoryTime when = MemoryTime::kAlways;
  std::string how;  // "2 bytes per parameter"
};

struct MemoryPlan {
  std::vector<MemoryPart> parts;
  double kv_least = 0;  // for one sequence at a time; the part "keys and values" is the maximum

  double total(MemoryTime when) const;
  // What sampling holds beside the keys and values, permanent tensors included.
  double beside_cache() const;
  // The most that a phase needs; sampling with the smallest cache that the engine accepts.
  double needed() const;
  // What the engine gives the cache on a device with so much memory for this program.
  double cache_bytes(double memory) const;
};

MemoryPlan plan_memory(const ModelShape& shape, const RunConfig& config, const Method& method,
                       at::Device device, at::ScalarType dtype, const RankDivision& ranks = {});

}  // namespace antisd::inline trainer
