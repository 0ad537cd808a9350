// The memory that RolloutEngine takes for requests, before there are any.
//
//   const std::vector<GroupShape> groups(16, {.prompt_tokens = 256, .samples = 8,
//                                             .max_new_tokens = 768});
//   const EngineMemory memory = engine_memory(shape, at::kCUDA, at::kBFloat16, groups);
#pragma once

#include <span>

#include "inference/rollout_engine.h"

namespace antisd::inline inference {

struct EngineMemory {
  double cache = 0;        // of keys and values, if nothing limits it
  double least_cache = 0;  // with less, generate() refuses the longest request
  double beside = 0;       // the most that is held beside the cache
};

EngineMemory engine_memory(const ModelShape& shape, at::Device device, at::ScalarType dtype,
                           std::span<const GroupShape> groups, const EngineOptions& options = {});

}  // namespace antisd::inline inference
