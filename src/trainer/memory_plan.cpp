#include "trainer/memory_plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "algo/loss_terms.h"
#include "inference/rollout_engine.h"
#include "ops/token_scores.h"

namespace antisd::inline trainer {
namespace {

constexpr const char* kCachePart = "keys and values";
constexpr int kGradientsInFlight = 2;  // blocks, of AdamW with ShardOptions::gradients

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

// Bytes per token that a forward pass keeps, and those of the layer whose backward pass runs: its
// values, if they are recomputed, and their gradients.
struct PassActivations {
  double kept = 0, working = 0;
};

PassActivations pass_activations(const ModelShape& shape, bool checkpointing, double element) {
  PassActivations bytes;
  double largest = 0;
  for (const LayerShape& layer : shape.layers) {
    const LayerActivations of_layer = layer_activations(shape, layer, element);
    bytes.kept += checkpointing ? of_layer.kept : of_layer.whole;
    largest = std::max(largest, of_layer.whole);
  }
  bytes.working = (checkpointing ? 2 : 1) * largest;
  return bytes;
}

double kv_bytes(const ModelShape& shape, double tokens, double element) {
  return tokens * 2 * element * static_cast<double>(shape.layers.size()) *
         static_cast<double>(shape.kv_heads * shape.head_dim);
}

// Adds the parts of one plan.
class Planner {
 public:
  Planner(const ModelShape& shape, const RunConfig& config, const Method& method, at::Device device,
          at::ScalarType dtype, const RankDivision& ranks)
      : shape_(shape),
        config_(config),
        method_(method),
        device_(device),
        ranks_(ranks),
        held_(shape, ranks),
        fp32_(dtype == at::kFloat),
        element_(fp32_ ? 4 : 2),
        longest_(
            static_cast<double>(std::min(config.rollout.max_sequence_tokens, shape.max_positions))),
        responses_(
            static_cast<double>(config.rollout.prompts_per_step * config.rollout.group_size)),
        tokens_(
            std::min(responses_ * longest_,
                     std::max(static_cast<double>(config.train.micro_batch_tokens), longest_))) {}

  MemoryPlan plan() {
    add_model();
    add_copies();
    add_cache();
    add_sums();
    add_backward_pass();
    add_scoring();
    return std::move(plan_);
  }

 private:
  void add(std::string name, double bytes, MemoryTime when, std::string how) {
    plan_.parts.push_back({std::move(name), bytes, when, std::move(how)});
  }
  std::string each() const { return fmt::format("{} bytes a parameter", element_); }

  void add_model() {
    const std::string shared =
        ranks_.members > 1 ? fmt::format(", one part of {}", ranks_.members) : "";
    if (ranks_.shard == Shard::kWeights) {
      add("weights", element_ * held_.beside_layers(), MemoryTime::kAlways,
          each() + ": embedding and head");
      for (const MemoryTime when : {MemoryTime::kRollout, MemoryTime::kScoring})
        add("layers", element_ * held_.whole_layers(), when, each() + ": whole");
      add("layers", element_ * held_.own_part_of_layers(), MemoryTime::kUpdate, each() + shared);
      add("layers in use", 2 * element_ * held_.largest_whole_layer(), MemoryTime::kUpdate,
          "the one that computes, the one that arrives");
    } else {
      add("weights", element_ * held_.all(), MemoryTime::kAlways, each());
    }
    if (!fp32_)
      add("masters", 4 * held_.own_part(), MemoryTime::kAlways, "4 bytes a parameter" + shared);
    add("moments", 8 * held_.own_part(), MemoryTime::kAlways, "2 x 4 bytes a parameter" + shared);
  }

  void add_copies() {
    if (needs_reference(config_.loss))
      add("reference", element_ * held_.all(), MemoryTime::kAlways, each());
    if (method_.slow_teacher()) {
      add("teacher", (fp32_ ? 4 : 4 + element_) * held_.all(), MemoryTime::kAlways,
          fp32_ ? "4 bytes a parameter" : "4 + 2 bytes a parameter");
    }
  }

  void add_cache() {
    // A rank samples whole groups.
    const double prompts = static_cast<double>(config_.rollout.prompts_per_step);
    const double own = std::ceil(prompts / ranks_.size) * responses_ / prompts;
    const double sequences = std::min(own, static_cast<double>(EngineOptions().max_sequences));
    plan_.kv_least = kv_bytes(shape_, longest_, element_);
    add(kCachePart, sequences * plan_.kv_least, MemoryTime::kRollout,
        fmt::format("at most: {} sequences of {} tokens; with less, fewer decode at a time",
                    sequences, longest_));
  }

  bool several_rounds() const { return responses_ * longest_ > tokens_ * ranks_.size; }

  // Sums that last over the rounds of micro-batches.
  void add_sums() {
    if (!several_rounds()) return;
    if (ranks_.size > 1) {
      add("gradient sums", 4 * held_.own_chunk(), MemoryTime::kUpdate,
          fmt::format("4 bytes per parameter, one part of {}", ranks_.size));
    } else if (fp32_) {
      add("gradients", element_ * held_.gradients(), MemoryTime::kUpdate, each());
    } else {
      add("gradient sums", 4 * held_.trainable(), MemoryTime::kUpdate,
          "4 bytes per parameter, over micro-batches");
    }
  }

  // The gradients at the end of a backward pass that the sums do not hold yet.
  MemoryPart last_gradients() const {
    MemoryPart part{.name = "gradients", .when = MemoryTime::kUpdate};
    if (ranks_.size == 1) {
      part.bytes = fp32_ && several_rounds() ? 0 : element_ * held_.gradients();
      part.how = each();
      return part;
    }
    // Embedding and head are sent when the backward pass has ended (GradientSum).
    const double waiting = held_.trainable_beside_layers() + held_.largest_layer();
    const bool freed = ranks_.shard >= Shard::kGradients;
    const double sent = freed ? kGradientsInFlight * held_.largest_layer() : held_.sent_of_layers();
    part.bytes =
        element_ * (waiting + 2 * sent) + (freed && !several_rounds() ? 4 * held_.own_chunk() : 0);
    part.how = fmt::format("{}: embedding, head and a layer; {} layers sent and received", each(),
                           freed ? fmt::format("{}", kGradientsInFlight) : "all");
    return part;
  }

  // A backward pass frees activations while it makes gradients, so that not all of both are there
  // at a time. The moment that needs most: the head's backward pass, the first layer's after it, or
  // the last one's.
  void add_backward_pass() {
    const bool recomputed = config_.model.gradient_checkpointing;
    const PassActivations bytes = pass_activations(shape_, recomputed, element_);
    const double kept = tokens_ * bytes.kept, working = tokens_ * bytes.working;
    const double head = static_cast<double>(shape_.vocabulary * shape_.hidden);
    const std::string batch = fmt::format("a micro-batch of {} tokens{}", tokens_,
                                          recomputed ? ", layers recomputed" : "");
    const auto activations = [&](double all, const char* moment) {
      return MemoryPart{"activations", all, MemoryTime::kUpdate, batch + moment};
    };
    const bool counted = ranks_.size == 1 && fp32_ && several_rounds();
    const MemoryPart first{"gradients", counted ? 0 : element_ * head, MemoryTime::kUpdate,
                           "the head's"};
    std::vector<MemoryPart> at_head = {activations(kept, "; before the backward pass"), first,
                                       head_chunks(/*backward=*/true, fp32_ ? 0 : 4 * head)};
    if (method_.distils) {
      at_head.push_back({"divergence chunks",
                         256 * static_cast<double>(shape_.vocabulary) * 16 + 4 * head,
                         MemoryTime::kUpdate, "two distributions of 256 tokens"});
    }
    const std::vector<MemoryPart> at_first = {
        activations(kept + working, "; as the backward pass begins"), first};
    const std::vector<MemoryPart> at_last = {activations(working, "; as the backward pass ends"),
                                             last_gradients()};
    const auto sum = [](const std::vector<MemoryPart>& parts) {
      double all = 0;
      for (const MemoryPart& part : parts)
        all += part.bytes;
      return all;
    };
    std::vector<MemoryPart> most = at_head;
    for (const std::vector<MemoryPart>& moment : {at_first, at_last})
      if (sum(moment) > sum(most)) most = moment;
    for (MemoryPart& part : most)
      if (part.bytes > 0) plan_.parts.push_back(std::move(part));
  }

  void add_scoring() {
    double largest = 0;
    for (const LayerShape& layer : shape_.layers)
      largest = std::max(largest, layer_activations(shape_, layer, element_).whole);
    add("layer's values", tokens_ * largest, MemoryTime::kScoring,
        fmt::format("a batch of {} tokens, one layer at a time", tokens_));
    plan_.parts.push_back(head_chunks(/*backward=*/false, 0));
  }

  MemoryPart head_chunks(bool backward, double gradient) const {
    const ScoreBlocks blocks = score_blocks(device_, backward);
    const double rows = std::min(tokens_, static_cast<double>(blocks.tokens));
    const double columns = static_cast<double>(std::min(blocks.vocabulary, shape_.vocabulary));
    return {"head chunks", rows * columns * (4 + element_) + gradient,
            backward ? MemoryTime::kUpdate : MemoryTime::kScoring,
            fmt::format("logits of {} tokens x {} words{}", rows, columns,
                        gradient > 0 ? ", and the head's gradient in fp32" : "")};
  }

  const ModelShape& shape_;
  const RunConfig& config_;
  const Method& method_;
  at::Device device_;
  RankDivision ranks_;
  Holdings held_;
  bool fp32_;
  double element_, longest_, responses_;
  double tokens_;  // of a micro-batch
  MemoryPlan plan_;
};

}  // namespace

const char* phase_name(MemoryTime when) {
  switch (when) {
    case MemoryTime::kAlways:
      return "always";
    case MemoryTime::kRollout:
      return "sampling";
    case MemoryTime::kScoring:
      return "scoring";
    case MemoryTime::kUpdate:
      return "update";
  }
  return "";
}

double MemoryPlan::total(MemoryTime when) const {
  double sum = 0;
  for (const MemoryPart& part : parts)
    if (part.when == when) sum += part.bytes;
  return sum;
}

double MemoryPlan::beside_cache() const {
  double sum = total(MemoryTime::kAlways);
  for (const MemoryPart& part : parts)
    if (part.when == MemoryTime::kRollout && part.name != kCachePart) sum += part.bytes;
  return sum;
}

double MemoryPlan::needed() const {
  // The engine gives the cache a share of the free memory.
  const double rollout = beside_cache() + kv_least / EngineOptions().memory_share;
  return std::max(rollout, total(MemoryTime::kAlways) +
                               std::max(total(MemoryTime::kScoring), total(MemoryTime::kUpdate)));
}

double MemoryPlan::cache_bytes(double memory) const {
  double most = 0;
  for (const MemoryPart& part : parts)
    if (part.name == kCachePart) most = part.bytes;
  const double given = EngineOptions().memory_share * (memory - beside_cache());
  return std::clamp(given, 0.0, most);
}

MemoryPlan plan_memory(const ModelShape& shape, const RunConfig& config, const Method& method,
                       at::Device device, at::ScalarType dtype, const RankDivision& ranks) {
  return Planner(shape, config, method, device, dtype, ranks).plan();
}

}  // namespace antisd::inline trainer
