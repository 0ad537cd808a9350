// The memory that a training step needs on each rank, by part and phase, from the model's shape.
//
//   const MemoryPlan plan = plan_memory(shape, config, method, device, dtype,
//                                       {16, 16, Shard::kGradients}, available_memory(device));
//   for (const MemoryPart& part : plan.parts) print(part.name, part.bytes);
//   if (plan.needed() > available_memory(device)) ...
//
// Permanent tensors, gradients and their sums are counted to the byte, with the gaps between
// parameters (kPieceElements), on the rank that holds most. What passes hold is counted from the
// operations' own sizes (model/activation_bytes.h, inference/engine_memory.h), without what
// allocators round up. The parts of scoring and update are those of the moment that needs most.
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

enum class MemoryTime { kAlways, kRollout, kScoring, kUpdate, kOnHost };
// "always", "sampling", "scoring", "update"; "on host": always, and not on the device.
const char* phase_name(MemoryTime when);

struct MemoryPart {
  std::string name;
  double bytes = 0;
  MemoryTime when = MemoryTime::kAlways;
  std::string how;  // "2 bytes per parameter"
};

struct MemoryPlan {
  std::vector<MemoryPart> parts;
  double cache_share = 0.5;  // cache_share() of the device
  double kv_least = 0;  // for one sequence at a time; the part "keys and values" is the maximum
  std::size_t layers = 0, kept_layers = 0;  // whose activations an update keeps: the last ones

  double total(MemoryTime when) const;
  double teacher_on_host() const;  // of what is on the host, a teacher's weights and states
  // What sampling holds beside the keys and values, permanent tensors included.
  double beside_cache() const;
  // The most that a phase needs; sampling with the smallest cache that the engine accepts.
  double needed() const;
  // What the engine gives the cache on a device with so much memory for this program.
  double cache_bytes(double memory) const;

 private:
  double sampling_part(const char* name) const;
};

// Where model.gradient_checkpointing is auto, an update keeps as many layers' activations as fit in
// `memory`, the bytes that a rank may have in all, with a margin: by default none. `teacher`: the
// shape of method.teacher.path.
MemoryPlan plan_memory(const ModelShape& shape, const RunConfig& config, const Method& method,
                       at::Device device, at::ScalarType dtype, const RankDivision& ranks = {},
                       double memory = 0, const ModelShape* teacher = nullptr);

// The same for an update that keeps so many layers' activations.
MemoryPlan plan_memory_keeping(std::size_t kept_layers, const ModelShape& shape,
                               const RunConfig& config, const Method& method, at::Device device,
                               at::ScalarType dtype, const RankDivision& ranks = {},
                               const ModelShape* teacher = nullptr);

// "the backward pass recomputes 8 of 28 layers".
std::string recomputing_text(const MemoryPlan& plan);

}  // namespace antisd::inline trainer
