#include "trainer/memory_plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "algo/loss_terms.h"
#include "inference/engine_memory.h"
#include "model/activation_bytes.h"
#include "ops/attention_choice.h"
#include "ops/ragged_runs.h"
#include "ops/token_scores.h"
#include "optim/streamed_update.h"

namespace antisd::inline trainer {
namespace {

constexpr const char* kCachePart = "keys and values";
constexpr const char* kTeacherPart = "teacher";
constexpr const char* kStepsPart = "chunks and steps";
constexpr int kGradientsInFlight = 2;  // blocks, of AdamW with ShardOptions::gradients

// cuBLAS has one for each thread and stream that multiplies: sampling, its captured steps, and the
// backward pass.
constexpr double kWorkspaceBytes = 3 * 32.0 * (1 << 20);

// Of the memory, what an update may fill with activations that it could recompute. On a GPU the
// rest is for what the plan does not know: it is within 5 % of what was measured, and the allocator
// leaves gaps. A host has other programs.
constexpr double kUsedOfGpu = 0.9, kUsedOfHost = 0.5;

double sum_of(const std::vector<MemoryPart>& parts) {
  double sum = 0;
  for (const MemoryPart& part : parts)
    sum += part.bytes;
  return sum;
}

// Adds the parts of one plan.
class Planner {
 public:
  Planner(const ModelShape& shape, const RunConfig& config, const Method& method, at::Device device,
          at::ScalarType dtype, const RankDivision& ranks, std::size_t kept_layers,
          const ModelShape* teacher)
      : shape_(shape),
        teacher_(teacher),
        config_(config),
        method_(method),
        device_(device),
        dtype_(dtype),
        ranks_(ranks),
        held_(shape, ranks),
        fp32_(dtype == at::kFloat),
        documents_(!config.pretrain.source.empty()),
        element_(fp32_ ? 4 : 2),
        longest_(static_cast<double>(std::min(
            documents_ ? config.pretrain.sequence_tokens : config.rollout.max_sequence_tokens,
            shape.max_positions))),
        responses_(static_cast<double>(documents_ ? config.pretrain.documents_per_step
                                                  : config.rollout.prompts_per_step *
                                                        config.rollout.group_size)),
        tokens_(std::min(responses_ * longest_,
                         std::max(static_cast<double>(config.train.micro_batch_tokens), longest_))),
        states_(static_cast<double>(shape.hidden)),
        kept_layers_(kept_layers) {
    for (const LayerShape& layer : shape.layers)
      layers_.push_back(layer_activations(shape, layer, device, dtype));
  }

  MemoryPlan plan() {
    add_model();
    if (device_.is_cuda()) add("workspaces", kWorkspaceBytes, MemoryTime::kAlways, "of cuBLAS");
    add_copies();
    if (teacher_ != nullptr) add_other_teacher(*teacher_);
    if (!documents_) add_sampling();
    add_sums();
    add_backward_pass();
    add_scoring();
    plan_.layers = layers_.size();
    plan_.kept_layers = kept_layers_;
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
    if (ranks_.shard == Shard::kWeights && !shape_.lora) {  // frozen weights stay whole
      add("weights", element_ * held_.beside_layers(), MemoryTime::kAlways,
          each() + ": embedding and head");
      for (const MemoryTime when :
           {MemoryTime::kRollout, MemoryTime::kScoring, MemoryTime::kUpdate})
        add_layers(when, shared);
    } else {
      add("weights", element_ * held_.all(), MemoryTime::kAlways, each());
    }
    add_quantized();
    const auto place = [&](bool on_host) {  // which a CPU's own memory is already
      return on_host && !device_.is_cpu() ? MemoryTime::kOnHost : MemoryTime::kAlways;
    };
    if (!fp32_)
      add("masters", 4 * held_.own_part(), place(ranks_.offload == Offload::kAll),
          "4 bytes a parameter" + shared);
    add("moments", 8 * held_.own_part(), place(ranks_.offload != Offload::kNone),
        "2 x 4 bytes a parameter" + shared);
  }

  // A frozen base, whole on every rank. A product converts a matrix while it runs.
  void add_quantized() {
    if (!shape_.base) return;
    add("frozen base", held_.quantized_bytes(), MemoryTime::kAlways,
        *shape_.base == QuantizedKind::kInt8 ? "int8, a scale per row"
                                             : "nf4, a scale per 64 elements");
    for (const MemoryTime when : {MemoryTime::kRollout, MemoryTime::kScoring, MemoryTime::kUpdate})
      add("dequantised", element_ * held_.largest_quantized(), when, "the largest matrix");
  }

  // Where ranks divide them.
  void add_layers(MemoryTime when, const std::string& shared) {
    if (ranks_.whole_between && when != MemoryTime::kUpdate)
      return add("layers", element_ * held_.whole_layers(), when, each() + ": whole");
    add("layers", element_ * held_.own_part_of_layers(), when, each() + shared);
    // A pass without gradients leaves a layer's last product to the next (LayerWalk).
    const int in_use = when == MemoryTime::kUpdate ? 2 : 3;
    add("layers in use", in_use * element_ * held_.largest_whole_layer(), when,
        when == MemoryTime::kUpdate
            ? "the one that computes, the one that arrives"
            : "the one that computes, the one before, the one that arrives");
  }

  void add_copies() {
    if (keeps_reference(config_)) {
      add("reference", shape_.lora ? 0 : element_ * held_.all(), MemoryTime::kAlways,
          shape_.lora ? "the model without its adapters" : each());
    }
    if (method_.slow_teacher()) {
      add("teacher", (fp32_ ? 4 : 4 + element_) * held_.trainable(), MemoryTime::kAlways,
          fp32_ ? "4 bytes a parameter" : "4 + 2 bytes a parameter");
    }
  }

  // A teacher that is another model is on a GPU while it scores. For a divergence its states then
  // rest on the host, and its head stays for the update.
  void add_other_teacher(const ModelShape& teacher) {
    const Holdings held(teacher, {});
    const double bytes = element_ * held.all();
    const bool rests = !device_.is_cpu();
    add(kTeacherPart, bytes, rests ? MemoryTime::kOnHost : MemoryTime::kAlways,
        each() + ": another model" + (rests ? ", at rest" : ""));
    if (rests) add(kTeacherPart, bytes, MemoryTime::kScoring, each() + ": another model");
    if (!method_.distils) return;
    const double head = element_ * static_cast<double>(teacher.vocabulary * teacher.hidden);
    const double own = std::ceil(responses_ / ranks_.size) * longest_;  // tokens
    for (const MemoryTime when : {MemoryTime::kScoring, MemoryTime::kUpdate})
      add("teacher's head", head, when, "for the divergence");
    add("teacher's states", own * element_ * static_cast<double>(teacher.hidden),
        rests ? MemoryTime::kOnHost : MemoryTime::kUpdate, fmt::format("at most: {} tokens", own));
  }

  void add_sampling() {
    // A rank samples whole groups. How long prompts are matters little.
    const std::int64_t prompt =
        std::clamp<std::int64_t>(config_.data.max_prompt_tokens, 1, std::int64_t(longest_) - 1);
    const RolloutConfig& rollout = config_.rollout;
    const std::int64_t own = (rollout.prompts_per_step + ranks_.size - 1) / ranks_.size;
    const std::vector<GroupShape> groups(
        static_cast<std::size_t>(own),
        {prompt, static_cast<int>(rollout.group_size), std::int64_t(longest_) - prompt});
    const EngineMemory engine = engine_memory(shape_, device_, dtype_, groups);
    plan_.cache_share = cache_share(device_);
    plan_.kv_least = engine.least_cache;
    add(kCachePart, engine.cache, MemoryTime::kRollout,
        fmt::format("at most: {} sequences of {} tokens; with less, fewer decode at a time",
                    std::min<std::int64_t>(own * rollout.group_size, EngineOptions().max_sequences),
                    longest_));
    add(kStepsPart, engine.beside, MemoryTime::kRollout,
        "prompts at a time, and the logits of a step");
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
      // Over micro-batches those of layers are added to the sums one by one (GradientFold), and
      // fp32 ones are the sums.
      const bool folded = several_rounds();
      const double there =
          folded ? held_.trainable_beside_layers() + held_.most_gradients() : held_.gradients();
      part.bytes = folded && fp32_ ? 0 : element_ * there;
      part.how = each() + (folded ? ": embedding, head and a layer" : "");
      return part;
    }
    // Embedding and head are sent when the backward pass has ended (GradientSum).
    const double waiting = held_.trainable_beside_layers() + held_.most_gradients();
    const bool freed = ranks_.shard >= Shard::kGradients;
    const double sent =
        freed ? kGradientsInFlight * held_.most_gradients() : held_.sent_of_layers();
    part.bytes =
        element_ * (waiting + 2 * sent) + (freed && !several_rounds() ? 4 * held_.own_chunk() : 0);
    part.how = fmt::format("{}: embedding, head and a layer; {} layers sent and received", each(),
                           freed ? fmt::format("{}", kGradientsInFlight) : "all");
    return part;
  }

  // Of the gradients at the end of a backward pass, those that are there when it has come down to
  // this layer.
  MemoryPart gradients_at(std::size_t layer) const {
    MemoryPart part = last_gradients();
    if (layer == 0) return part;
    const double above = static_cast<double>(shape_.layers.size() - 1 - layer);
    const double layers = 1 + (ranks_.size > 1 ? 2 : 1) * above;  // sent, and received
    const double made = element_ * (head() + layers * held_.most_gradients());
    if (made < part.bytes) {
      part.bytes = made;
      part.how = fmt::format("{}: the head's, and those of the last layers", each());
    }
    return part;
  }

  // Elements of the head that have a gradient.
  double head() const {
    return shape_.lora ? 0 : static_cast<double>(shape_.vocabulary * shape_.hidden);
  }

  // Bytes per token that layers [0, end) keep.
  double kept_by(std::size_t end) const {
    double bytes = 0;
    for (std::size_t i = 0; i < end; ++i)
      bytes += is_kept(i) ? layers_[i].kept : layers_[i].input;
    return bytes;
  }
  bool is_kept(std::size_t layer) const { return layer + kept_layers_ >= layers_.size(); }

  MemoryPart activations(double bytes, const std::string& moment) const {
    return {"activations", tokens_ * bytes, MemoryTime::kUpdate,
            fmt::format("a micro-batch of {} tokens, {} of {} layers recomputed; {}", tokens_,
                        layers_.size() - kept_layers_, layers_.size(), moment)};
  }

  // The head's backward pass. The states go through it in fp32, as the head's gradient does.
  std::vector<MemoryPart> head_moment() const {
    const bool counted = ranks_.size == 1 && fp32_ && several_rounds();
    const double stream = 4 * states_, rounded = element_ * states_;
    std::vector<MemoryPart> parts = {
        activations(kept_by(layers_.size()) + stream + rounded + stream + rounded,
                    "in the head's backward pass"),
        {"gradients", counted ? 0 : element_ * head(), MemoryTime::kUpdate, "the head's"},
        head_chunks(/*backward=*/true, fp32_ ? 0 : 4 * head())};
    if (method_.distils) {
      // fp32 values of each word: log-probabilities of both, probabilities or ratios, gradients.
      const double values = method_.distillation.tokens == DistilledTokens::kStudentsTop ? 4 : 7;
      parts.push_back({"divergence chunks",
                       256 * static_cast<double>(shape_.vocabulary) * 4 * values + 4 * head(),
                       MemoryTime::kUpdate, "two distributions of 256 tokens"});
    }
    return parts;
  }

  // A layer's backward pass. Those above it have freed what they kept. The states before the
  // targets are held until the end.
  std::vector<MemoryPart> layer_moment(std::size_t layer) const {
    const LayerActivations& own = layers_[layer];
    const double again = is_kept(layer) ? 0 : own.kept - own.input;
    const auto moment = [&](double gradients) {
      return activations(kept_by(layer + 1) + again + gradients + element_ * states_,
                         fmt::format("in layer {}'s backward pass", layer));
    };
    std::vector<MemoryPart> parts = {moment(own.gradients), gradients_at(layer)};
    if (const double workspace = ragged_workspace();
        tokens_ * own.ragged_gradients + workspace > tokens_ * own.gradients && workspace > 0) {
      parts[0] = moment(own.ragged_gradients);
      parts.push_back(
          {"attention workspace", workspace, MemoryTime::kUpdate, "of cuDNN's backward pass"});
    }
    return parts;
  }

  // Of attention's backward pass, where lengths may be ragged.
  double ragged_workspace() const {
    if (!may_be_ragged(device_, dtype_, shape_.head_dim)) return 0;
    const RaggedHeads heads{shape_.heads, shape_.kv_heads, shape_.head_dim};
    const auto tokens = static_cast<std::int64_t>(tokens_);
    return config_.train.deterministic
               ? most_run_bytes(tokens, static_cast<std::int64_t>(longest_), heads)
               : any_order_bytes(tokens, heads);
  }

  // The optimizer's step with a state on the host: what is streamed, and gradients that are not in
  // the sums.
  std::vector<MemoryPart> streaming_moment() const {
    const double kinds = !fp32_ && ranks_.offload == Offload::kAll ? 3 : 2;
    const double piece = std::min(double(kStreamedElements), held_.largest_own_part());
    const double gradients = several_rounds()   ? 0
                             : ranks_.size == 1 ? element_ * held_.gradients()
                                                : 4 * held_.own_chunk();
    return {{"stream buffers", kStreamBuffers * kinds * 4 * piece, MemoryTime::kUpdate,
             fmt::format("{} pieces of {:.0f} elements", kStreamBuffers, piece)},
            {"gradients", gradients, MemoryTime::kUpdate, "in the optimizer's step"}};
  }

  // A backward pass frees activations while it makes gradients, so that not all of both are there
  // at a time: the parts are those of the moment that needs most.
  void add_backward_pass() {
    std::vector<MemoryPart> most = head_moment();
    for (std::size_t layer = layers_.size(); layer-- > 0;) {
      std::vector<MemoryPart> moment = layer_moment(layer);
      if (sum_of(moment) > sum_of(most)) most = std::move(moment);
    }
    if (ranks_.offload != Offload::kNone && sum_of(streaming_moment()) > sum_of(most))
      most = streaming_moment();
    for (MemoryPart& part : most)
      if (part.bytes > 0) plan_.parts.push_back(std::move(part));
  }

  // One layer at a time; then the head over the states, of which those before targets are selected.
  void add_scoring() {
    double largest = 0, states_of_token = states_;
    for (const LayerActivations& layer : layers_)
      largest = std::max(largest, layer.inference);
    if (teacher_ != nullptr) {
      states_of_token = std::max(states_, static_cast<double>(teacher_->hidden));
      for (const LayerShape& layer : teacher_->layers)
        largest = std::max(largest, layer_activations(*teacher_, layer, device_, dtype_).inference);
    }
    const std::string batch = fmt::format("a batch of {} tokens", tokens_);
    const MemoryPart layer{"layer's values", tokens_ * largest, MemoryTime::kScoring, batch};
    const MemoryPart states{"states", tokens_ * 2 * element_ * states_of_token,
                            MemoryTime::kScoring, batch};
    const MemoryPart chunks = head_chunks(/*backward=*/false, 0);
    const bool in_layer = layer.bytes > states.bytes + chunks.bytes;
    for (const MemoryPart& part : in_layer ? std::vector{layer} : std::vector{states, chunks})
      plan_.parts.push_back(part);
  }

  MemoryPart head_chunks(bool backward, double gradient) const {
    const ScoreBlocks blocks = score_blocks(device_, backward);
    const double rows = std::min(tokens_, static_cast<double>(blocks.tokens));
    const double columns = static_cast<double>(std::min(blocks.vocabulary, shape_.vocabulary));
    return {"head chunks", rows * columns * (4 + (backward ? element_ : 0)) + gradient,
            backward ? MemoryTime::kUpdate : MemoryTime::kScoring,
            fmt::format("logits of {} tokens x {} words{}", rows, columns,
                        gradient > 0 ? ", and the head's gradient in fp32" : "")};
  }

  const ModelShape& shape_;
  const ModelShape* teacher_;  // another model, or null
  const RunConfig& config_;
  const Method& method_;
  at::Device device_;
  at::ScalarType dtype_;
  RankDivision ranks_;
  Holdings held_;
  bool fp32_;
  bool documents_;  // instead of responses
  double element_, longest_, responses_;
  double tokens_;  // of a micro-batch
  double states_;  // elements of a token's hidden state
  std::size_t kept_layers_;
  std::vector<LayerActivations> layers_;
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
    case MemoryTime::kOnHost:
      return "on host";
  }
  return "";
}

double MemoryPlan::total(MemoryTime when) const {
  double sum = 0;
  for (const MemoryPart& part : parts)
    if (part.when == when) sum += part.bytes;
  return sum;
}

double MemoryPlan::teacher_on_host() const {
  double sum = 0;
  for (const MemoryPart& part : parts)
    if (part.when == MemoryTime::kOnHost && part.name.starts_with(kTeacherPart)) sum += part.bytes;
  return sum;
}

double MemoryPlan::beside_cache() const {
  double sum = total(MemoryTime::kAlways);
  for (const MemoryPart& part : parts)
    if (part.when == MemoryTime::kRollout && part.name != kCachePart) sum += part.bytes;
  return sum;
}

// Of the parts of sampling.
double MemoryPlan::sampling_part(const char* name) const {
  double sum = 0;
  for (const MemoryPart& part : parts)
    if (part.when == MemoryTime::kRollout && part.name == name) sum += part.bytes;
  return sum;
}

double MemoryPlan::needed() const {
  // The engine gives the cache a share of the memory that is free before chunks and steps.
  const double steps = sampling_part(kStepsPart);
  const double rollout =
      beside_cache() - steps + std::max(kv_least / cache_share, kv_least + steps);
  return std::max(rollout, total(MemoryTime::kAlways) +
                               std::max(total(MemoryTime::kScoring), total(MemoryTime::kUpdate)));
}

double MemoryPlan::cache_bytes(double memory) const {
  const double free = memory - beside_cache() + sampling_part(kStepsPart);
  const double most = std::min(cache_share * free, free - sampling_part(kStepsPart));
  return std::clamp(most, 0.0, sampling_part(kCachePart));
}

MemoryPlan plan_memory_keeping(std::size_t kept_layers, const ModelShape& shape,
                               const RunConfig& config, const Method& method, at::Device device,
                               at::ScalarType dtype, const RankDivision& ranks,
                               const ModelShape* teacher) {
  return Planner(shape, config, method, device, dtype, ranks,
                 std::min(kept_layers, shape.layers.size()), teacher)
      .plan();
}

MemoryPlan plan_memory(const ModelShape& shape, const RunConfig& config, const Method& method,
                       at::Device device, at::ScalarType dtype, const RankDivision& ranks,
                       double memory, const ModelShape* teacher) {
  const auto with = [&](std::size_t kept) {
    return plan_memory_keeping(kept, shape, config, method, device, dtype, ranks, teacher);
  };
  const std::string& recompute = config.model.gradient_checkpointing;
  // Divided weights are fetched for the backward pass of a layer as it is recomputed.
  if (recompute == "true" || ranks.shard == Shard::kWeights) return with(0);
  if (recompute == "false") return with(shape.layers.size());
  const double most = (device.is_cuda() ? kUsedOfGpu : kUsedOfHost) * memory;
  // The more layers are kept, the more is needed.
  std::size_t fits = 0, too_many = shape.layers.size() + 1;
  while (too_many - fits > 1) {
    const std::size_t middle = (fits + too_many) / 2;
    const MemoryPlan plan = with(middle);
    const double needed = plan.total(MemoryTime::kAlways) + plan.total(MemoryTime::kUpdate);
    (needed <= most ? fits : too_many) = middle;
  }
  return with(fits);
}

std::string recomputing_text(const MemoryPlan& plan) {
  return fmt::format("the backward pass recomputes {} of {} layers", plan.layers - plan.kept_layers,
                     plan.layers);
}

}  // namespace antisd::inline trainer
