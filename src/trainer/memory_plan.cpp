#include "trainer/memory_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "algo/loss_terms.h"
#include "inference/rollout_engine.h"
#include "model/architecture.h"
#include "ops/token_scores.h"

namespace antisd::inline trainer {
namespace {

// Bytes per token and layer that are kept until the backward pass.
struct LayerActivations {
  double kept = 0;   // with gradient checkpointing: the stream and attention's result
  double whole = 0;  // without
};

LayerActivations layer_activations(const ModelShape& shape, const LayerShape& layer,
                                   double element) {
  const double hidden = static_cast<double>(shape.hidden);
  const double queries = static_cast<double>(shape.heads * shape.head_dim);
  const double keys = static_cast<double>(shape.kv_heads * shape.head_dim);
  const double units = static_cast<double>(
      layer.sparse ? shape.experts_per_token * shape.expert_intermediate : shape.intermediate);
  const double routed =
      layer.sparse ? static_cast<double>(2 * shape.experts_per_token * shape.hidden) : 0;
  LayerActivations bytes;
  bytes.kept = 4 * hidden + element * queries + 4 * static_cast<double>(shape.heads);
  bytes.whole = bytes.kept + 4 * hidden                       // the stream between the halves
                + element * (2 * hidden                       // after the norms
                             + 2 * queries + 3 * keys         // projected, and rotated
                             + 3 * units + routed + hidden);  // gate, up, their product; the sum
  return bytes;
}

double activation_bytes(const ModelShape& shape, bool checkpointing, double tokens,
                        double element) {
  double kept = 0, largest = 0;
  for (const LayerShape& layer : shape.layers) {
    const LayerActivations bytes = layer_activations(shape, layer, element);
    kept += checkpointing ? bytes.kept : bytes.whole;
    largest = std::max(largest, bytes.whole);
  }
  // The layer in progress also has the gradients of its values.
  return tokens * (kept + (checkpointing ? 2 : 1) * largest);
}

double kv_bytes(const ModelShape& shape, double tokens, double element) {
  return tokens * 2 * element * static_cast<double>(shape.layers.size()) *
         static_cast<double>(shape.kv_heads * shape.head_dim);
}

}  // namespace

double MemoryPlan::total(MemoryTime when) const {
  double sum = 0;
  for (const MemoryPart& part : parts)
    if (part.when == when) sum += part.bytes;
  return sum;
}

double MemoryPlan::needed() const {
  // The engine gives the cache a share of the free memory.
  const double rollout = kv_least / EngineOptions().memory_share;
  return total(MemoryTime::kAlways) + std::max(rollout, total(MemoryTime::kUpdate));
}

MemoryPlan plan_memory(const ModelShape& shape, const RunConfig& config, const Method& method,
                       at::Device device, at::ScalarType dtype) {
  double count = 0, trained = 0;  // elements
  for (const ParameterSpec& spec : parameter_specs(shape)) {
    count += static_cast<double>(spec.count());
    if (spec.trainable) trained += static_cast<double>(spec.count());
  }
  const bool fp32 = dtype == at::kFloat;
  const double element = fp32 ? 4 : 2;
  const double longest =
      static_cast<double>(std::min(config.rollout.max_sequence_tokens, shape.max_positions));
  const double responses =
      static_cast<double>(config.rollout.prompts_per_step * config.rollout.group_size);
  const double tokens = std::min(
      responses * longest, std::max(static_cast<double>(config.train.micro_batch_tokens), longest));
  const std::string each = fmt::format("{} bytes a parameter", element);

  MemoryPlan plan;
  const auto add = [&](std::string name, double bytes, MemoryTime when, std::string how) {
    plan.parts.push_back({std::move(name), bytes, when, std::move(how)});
  };
  add("weights", element * count, MemoryTime::kAlways, each);
  if (!fp32) add("masters", 4 * trained, MemoryTime::kAlways, "4 bytes a parameter");
  add("moments", 8 * trained, MemoryTime::kAlways, "2 x 4 bytes a parameter");
  if (needs_reference(config.loss)) add("reference", element * count, MemoryTime::kAlways, each);

  if (method.slow_teacher()) {
    add("teacher", (fp32 ? 4 : 4 + element) * count, MemoryTime::kAlways,
        fp32 ? "4 bytes a parameter" : "4 + 2 bytes a parameter");
  }

  const double sequences = std::min(responses, static_cast<double>(EngineOptions().max_sequences));
  plan.kv_least = kv_bytes(shape, longest, element);
  add("keys and values", sequences * plan.kv_least, MemoryTime::kRollout,
      fmt::format("at most: {} sequences of {} tokens; with less, fewer decode at a time",
                  sequences, longest));

  add("gradients", element * trained, MemoryTime::kUpdate, each);
  const bool several = responses * longest > tokens;
  if (several && !fp32)
    add("gradient sums", 4 * trained, MemoryTime::kUpdate,
        "4 bytes per parameter, over micro-batches");
  add("activations", activation_bytes(shape, config.model.gradient_checkpointing, tokens, element),
      MemoryTime::kUpdate,
      fmt::format("a micro-batch of {} tokens{}", tokens,
                  config.model.gradient_checkpointing ? ", layers recomputed" : ""));
  const ScoreBlocks blocks = score_blocks(device, /*backward=*/true);
  const double rows = std::min(tokens, static_cast<double>(blocks.tokens));
  const double columns = static_cast<double>(std::min(blocks.vocabulary, shape.vocabulary));
  const double head = static_cast<double>(shape.vocabulary * shape.hidden);
  add("head chunks", rows * columns * (4 + element) + (fp32 ? 0 : 4 * head), MemoryTime::kUpdate,
      fmt::format("logits of {} tokens x {} words, and the head's gradient", rows, columns));
  if (method.distils) {
    add("divergence chunks", 256 * static_cast<double>(shape.vocabulary) * 16 + 4 * head,
        MemoryTime::kUpdate, "two distributions of 256 tokens");
  }
  return plan;
}

}  // namespace antisd::inline trainer
