#include "inference/engine_memory.h"

#include <algorithm>

#include "model/activation_bytes.h"

namespace antisd::inline inference {

EngineMemory engine_memory(const ModelShape& shape, at::Device device, at::ScalarType dtype,
                           std::span<const GroupShape> groups, const EngineOptions& options) {
  const SchedulerLimits limits = engine_limits(device, options);
  const auto element = static_cast<double>(c10::elementSize(dtype));
  const auto page = static_cast<double>(KvPool::page_bytes(shape, dtype));
  std::int64_t longest = 0, prompts = 0, samples = 0;
  for (const GroupShape& group : groups) {
    longest = std::max(longest, group.prompt_tokens + group.max_new_tokens);
    prompts += group.prompt_tokens;
    samples += group.samples;
  }
  EngineMemory memory;
  memory.cache = page * static_cast<double>(Scheduler::pages_wanted(groups, limits));
  memory.least_cache = page * static_cast<double>(Scheduler::pages_needed(longest, kPageTokens));

  // A layer's values, and the keys and values that attention gathers from the cache.
  double layer = 0;
  for (const LayerShape& each : shape.layers)
    layer = std::max(layer, layer_activations(shape, each, device, dtype).inference);
  const double gathered = 2 * element * static_cast<double>(shape.kv_heads * shape.head_dim);
  const double chunk = static_cast<double>(std::min(prompts, limits.prefill_chunk_tokens));
  const double copies = page * static_cast<double>(KvPool::kCopiedAtATime);
  // A captured step keeps its memory.
  const double rows = static_cast<double>(std::min<std::int64_t>(samples, limits.slots));
  memory.beside = rows * (layer + 4 * static_cast<double>(shape.vocabulary)) +
                  std::max(chunk * (layer + gathered), copies);
  return memory;
}

}  // namespace antisd::inline inference
