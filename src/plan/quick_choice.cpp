#include "plan/quick_choice.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/toml_text.h"
#include "model/adapted_shape.h"
#include "model/causal_lm.h"
#include "plan/model_names.h"
#include "plan/plan_input.h"

namespace antisd::inline plan {
namespace {

constexpr double kGiB = 1 << 30;

// Of the free memory. The plan is within 5 % of what was measured on a GPU, and allocators leave
// gaps; a host has other programs.
constexpr double kQuickShareOfGpu = 0.9, kQuickShareOfHost = 0.8;

constexpr std::int64_t kSmallModel = 100'000'000;    // parameters: fast even on a CPU
constexpr std::int64_t kLargeModel = 1'000'000'000;  // the paper's models are larger

constexpr std::int64_t kMicroBatch = 8192;  // tokens; fewer where memory asks for it
constexpr std::int64_t kQuickRank = 32;     // of adapters

struct QuickWay {
  const char* name;
  std::vector<QuickSetting> settings;
};

QuickSetting adapters_setting() {
  return {
      "model.lora.rank", toml_value(kQuickRank),
      "Only adapters are trained: the whole model's masters, moments and gradients do not fit."};
}

// Those that change the model least come first, of these the fastest.
std::vector<QuickWay> quick_ways(bool gpu, const ModelShape& shape) {
  std::vector<QuickWay> ways;
  if (gpu) {
    ways.push_back(
        {"whole", {{"optim.offload", "\"none\"", "All of AdamW's state fits on the GPU."}}});
    ways.push_back({"whole, moments on the host",
                    {{"optim.offload", "\"moments\"",
                      "The GPU has no room for AdamW's moments; the host has."}}});
    ways.push_back({"whole, masters and moments on the host",
                    {{"optim.offload", "\"all\"",
                      "The GPU has no room for AdamW's masters and moments; the host has."}}});
  } else {
    ways.push_back({"whole", {}});
  }
  if (shape.hidden < 2 * kQuickRank) return ways;  // adapters would be as large as the model
  ways.push_back({"adapters", {adapters_setting()}});
  ways.push_back({"adapters over int8",
                  {adapters_setting(),
                   {"model.base_dtype", "\"int8\"",
                    "The frozen weights take one byte each: two do not fit."}}});
  ways.push_back({"adapters over nf4",
                  {adapters_setting(),
                   {"model.base_dtype", "\"nf4\"",
                    "The frozen weights take half a byte each: one does not fit."}}});
  return ways;
}

// What the user has set.
class Given {
 public:
  explicit Given(const std::vector<std::string>& settings) {
    for (const std::string& setting : settings)
      config_.options().assign(setting);
  }
  bool has(std::string_view key) const { return config_.options().find(key)->was_set(); }
  bool sets_way() const {
    return has("optim.offload") || has("model.lora.rank") || has("model.base_dtype");
  }
  const RunConfig& config() const { return config_; }

 private:
  RunConfig config_;
};

std::vector<std::int64_t> quick_lengths(bool gpu, const ModelShape& shape, const Given& given) {
  if (given.has("rollout.max_sequence_tokens")) return {given.config().rollout.max_sequence_tokens};
  std::vector<std::int64_t> lengths;
  for (const std::int64_t tokens :
       gpu ? std::vector<std::int64_t>{2048, 1024} : std::vector<std::int64_t>{512, 256}) {
    const std::int64_t allowed = std::min(tokens, shape.max_positions);
    if (lengths.empty() || lengths.back() != allowed) lengths.push_back(allowed);
  }
  return lengths;
}

// What is tried, in this order.
struct QuickTry {
  QuickWay way;
  std::int64_t tokens = 0;       // of a sequence
  std::int64_t micro_batch = 0;  // tokens
};

std::vector<QuickTry> quick_tries(const ModelShape& shape, bool gpu, const Given& given) {
  const std::vector<QuickWay> ways =
      given.sets_way() ? std::vector<QuickWay>{{"as given", {}}} : quick_ways(gpu, shape);
  std::vector<QuickTry> tries;
  for (const std::int64_t tokens : quick_lengths(gpu, shape, given)) {
    for (const QuickWay& way : ways) {
      tries.push_back({way, tokens, std::max(tokens, kMicroBatch)});
      if (tokens < kMicroBatch) tries.push_back({way, tokens, tokens});
    }
  }
  return tries;
}

std::string learning_rate(std::int64_t parameters, bool adapters) {
  if (parameters < kSmallModel) return "1e-4";
  if (parameters < kLargeModel) return adapters ? "5e-5" : "5e-6";
  return adapters ? "1e-5" : "1e-6";
}

// What depends on the machine, the model and the longest sequence, but not on memory.
std::vector<QuickSetting> common_settings(const ModelShape& shape, bool gpu, const QuickTry& one,
                                          std::int64_t steps, bool adapters) {
  const std::int64_t tokens = one.tokens;
  const bool small = shape.parameter_count() < kSmallModel;
  const bool slow = !gpu && !small;
  const auto number = [](std::int64_t value) { return toml_value(value); };
  return {
      {"rollout.max_sequence_tokens", number(tokens),
       slow ? "Prompt and response together. Short, because this is a CPU."
            : "Prompt and response together, enough for short reasoning."},
      {"rollout.prompts_per_step", slow ? "4" : "16", "Problems of a step."},
      {"rollout.group_size", slow ? "4" : "8",
       "Responses to each problem; they are compared with each other."},
      {"method.name", "\"antisd\"", "GRPO and the term of AntiSD; \"grpo\" is the baseline."},
      {"method.signal.max_response_tokens", number(std::max<std::int64_t>(1, tokens * 12 / 16)),
       "Longer responses get no term: without this bound text may grow without end."},
      {"method.gate.warmup_steps", number(std::clamp<std::int64_t>(steps / 4, 1, 5)),
       "These first steps are plain GRPO and calibrate the gate."},
      {"context.max_solution_tokens", number(std::max<std::int64_t>(16, tokens / 4)),
       "The teacher is shown a solution of at most so many tokens."},
      {"optim.lr", learning_rate(shape.parameter_count(), adapters),
       small      ? "As the shipped recipe for models this small."
       : adapters ? "Adapters take ten times the learning rate of the whole model."
       : shape.parameter_count() < kLargeModel ? "Above the paper's 1e-6, which is for 4B and more."
                                               : "The paper's."},
      {"train.steps", number(steps), "A start; `train --resume` goes on from here with more."},
      {"train.micro_batch_tokens", number(one.micro_batch),
       "Tokens of a pass: less takes less memory and gives the same result."},
      {"eval.every", number(steps), "The held-out problems are tried before and after training."},
      {"eval.max_sequence_tokens", number(tokens), "As in training."},
      {"checkpoint.every", number(std::max<std::int64_t>(1, std::min<std::int64_t>(10, steps / 4))),
       "A run that was stopped goes on from the last checkpoint."},
      {"checkpoint.keep", "1", "The newest is enough to go on."},
      {"record.rollouts_every", number(std::max<std::int64_t>(1, steps / 4)),
       "Responses with the score of each token, for the report and `inspect`."},
  };
}

struct QuickNeed {
  double device = 0, host = 0;
};

QuickNeed quick_need(const ModelShape& model, const std::vector<QuickSetting>& settings,
                     const std::vector<std::string>& given, bool gpu) {
  RunConfig config;
  for (const QuickSetting& setting : settings)
    config.options().assign(setting.key + "=" + setting.value);
  for (const std::string& setting : given)
    config.options().assign(setting);
  config.resolve();
  const at::Device device = gpu ? at::Device(at::kCUDA) : at::Device(at::kCPU);
  const RankDivision alone{.offload =
                               offload_of_name(config.optim.offload).value_or(Offload::kNone)};
  const MemoryPlan plan = plan_memory(configured_shape(model, config.model), config,
                                      resolve_method(config.method, config.loss), device,
                                      compute_dtype(device, config.model.dtype), alone);
  return {plan.needed(), plan.total(MemoryTime::kOnHost)};
}

double used_share(bool gpu) {
  return gpu ? kQuickShareOfGpu : kQuickShareOfHost;
}

// The last try needs least.
bool fits_somehow(const ModelShape& shape, const QuickMachine& machine) {
  const QuickTry least = quick_tries(shape, machine.gpu, Given({})).back();
  std::vector<QuickSetting> settings = least.way.settings;
  for (QuickSetting& setting : common_settings(shape, machine.gpu, least, 10, true))
    settings.push_back(std::move(setting));
  const QuickNeed need = quick_need(shape, settings, {}, machine.gpu);
  return need.device <= used_share(machine.gpu) * machine.memory;
}

// The smallest card that has so many bytes for a run, and the largest known model that this
// machine trains.
std::string what_would_fit(double least, const QuickMachine& machine) {
  const Card* smallest = nullptr;
  for (const Card& card : cards())
    if (least <= kQuickShareOfGpu * card.memory &&
        (smallest == nullptr || card.memory < smallest->memory))
      smallest = &card;
  const std::string text = smallest == nullptr
                               ? "no single card is enough: `antisd plan` says how many are"
                               : fmt::format("a card of {:.0f} GiB is enough ({})",
                                             smallest->memory / kGiB, smallest->name);
  std::string fitting;
  std::int64_t largest = 0;
  for (const std::string& name : known_models()) {
    const ModelShape shape = *known_shape(name);
    if (shape.parameter_count() <= largest || !fits_somehow(shape, machine)) continue;
    fitting = name;
    largest = shape.parameter_count();
  }
  return fitting.empty() ? text : fmt::format("{}; {} fits here", text, fitting);
}

}  // namespace

QuickChoice choose_quick(const ModelShape& shape, const QuickMachine& machine,
                         const std::vector<std::string>& given, std::int64_t steps) {
  const Given user(given);
  const bool slow = !machine.gpu && shape.parameter_count() >= kSmallModel;
  QuickChoice choice;
  choice.steps = steps > 0                 ? steps
                 : user.has("train.steps") ? user.config().train.steps
                 : slow                    ? 10
                                           : 50;
  choice.held_out = slow ? 32 : 128;
  const double room = machine.memory * used_share(machine.gpu);
  double least = std::numeric_limits<double>::infinity();
  std::string least_way;
  for (const QuickTry& one : quick_tries(shape, machine.gpu, user)) {
    const bool adapters =
        std::string_view(one.way.name).starts_with("adapters") || user.config().model.lora.rank > 0;
    choice.settings = one.way.settings;
    for (QuickSetting& setting : common_settings(shape, machine.gpu, one, choice.steps, adapters))
      choice.settings.push_back(std::move(setting));
    std::erase_if(choice.settings,
                  [&](const QuickSetting& setting) { return user.has(setting.key); });
    const QuickNeed need = quick_need(shape, choice.settings, given, machine.gpu);
    choice.way = one.way.name;
    choice.needed = need.device;
    choice.on_host = need.host;
    choice.fits = need.device <= room && need.host <= machine.host;
    if (choice.fits) return choice;
    if (need.device >= least) continue;
    least = need.device;
    least_way = fmt::format("{}, sequences of {} tokens", one.way.name, one.tokens);
  }
  choice.settings.clear();
  choice.needed = least;
  choice.reason = fmt::format(
      "it needs {:.1f} GiB of {} at least ({}); {:.1f} GiB are free, {:.1f} of them to use",
      least / kGiB, machine.gpu ? "the GPU" : "memory", least_way, machine.memory / kGiB,
      room / kGiB);
  choice.remedy = what_would_fit(least, machine);
  return choice;
}

double cpu_step_seconds(const ModelShape& shape, const RunConfig& config, const CpuRates& rates) {
  const double flops = rates.flops / 2;
  const auto active = static_cast<double>(shape.active_parameter_count());
  const auto longest =
      static_cast<double>(std::min(config.rollout.max_sequence_tokens, shape.max_positions));
  const auto responses =
      static_cast<double>(config.rollout.prompts_per_step * config.rollout.group_size);
  const double tokens = responses * longest / 2;
  const double decode_step = std::max(4 * active / rates.read, 2 * active * responses / 2 / flops);
  const double sampling = longest * decode_step;
  const double scoring =
      2 * 2 * active * tokens / flops;  // the student's tokens, and the teacher's
  return sampling + scoring + shape.training_flops() * tokens / flops;
}

}  // namespace antisd::inline plan
