#include "plan/model_fits.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "model/adapted_shape.h"
#include "model/causal_lm.h"
#include "plan/model_names.h"

namespace antisd::inline plan {
namespace {

struct Way {
  const char* name;
  std::vector<std::string> settings;
};

// Those that cost least come first.
std::vector<Way> whole_ways(bool on_cpu) {
  if (on_cpu) return {{"whole", {}}};  // its state is on the host in any case
  return {{"whole", {"optim.offload=none"}},
          {"whole", {"optim.offload=moments"}},
          {"whole", {"optim.offload=all"}}};
}

const std::vector<Way>& adapter_ways() {
  static const std::vector<Way> ways = {
      {"adapters", {"model.lora.rank=32"}},
      {"adapters", {"model.lora.rank=32", "model.base_dtype=int8"}},
      {"adapters", {"model.lora.rank=32", "model.base_dtype=nf4"}}};
  return ways;
}

constexpr std::int64_t kLengths[] = {32'768, 16'384, 8'192};

struct Need {
  double device = 0, host = 0;
};

Need need_of(const ModelShape& model, const Way& way, std::int64_t tokens, at::Device device) {
  RunConfig config;
  for (const std::string& setting : way.settings)
    config.options().assign(setting);
  config.options().assign(fmt::format("rollout.max_sequence_tokens={}", tokens));
  config.options().assign(fmt::format("train.micro_batch_tokens={}", tokens));
  config.resolve();
  const RankDivision alone{.offload =
                               offload_of_name(config.optim.offload).value_or(Offload::kNone)};
  const MemoryPlan plan =
      plan_memory(configured_shape(model, config.model), config,
                  resolve_method(config.method, config.loss), device, compute_dtype(device), alone);
  return {plan.needed(), plan.total(MemoryTime::kOnHost)};
}

// Settings that a user has to give: without the defaults.
std::string settings_text(const Way& way) {
  std::string text;
  for (const std::string& setting : way.settings)
    if (setting != "optim.offload=none") text += (text.empty() ? "" : " ") + setting;
  return text;
}

}  // namespace

std::string ModelFit::text() const {
  std::string text;
  for (const FittingWay& way : ways)
    text += fmt::format("{}{}{} up to {}K tokens", text.empty() ? "" : "; ", way.name,
                        way.settings.empty() ? "" : fmt::format(" ({})", way.settings),
                        way.tokens / 1024);
  return text.empty() ? fmt::format("does not fit: {:.0f} GiB at least", least / (1 << 30)) : text;
}

std::vector<ModelFit> model_fits(const Room& room, at::Device device) {
  std::vector<ModelFit> fits;
  for (const std::string& name : known_models()) {
    ModelFit fit{.model = name, .least = std::numeric_limits<double>::infinity()};
    const ModelShape shape = *known_shape(name);
    std::int64_t longest = 0;
    // The longest sequences first, of these the way that costs least.
    const auto try_ways = [&](const std::vector<Way>& ways) {
      for (const std::int64_t tokens : kLengths) {
        if (tokens <= longest) return;
        for (const Way& way : ways) {
          const Need need = need_of(shape, way, tokens, device);
          fit.least = std::min(fit.least, need.device);
          if (need.device > room.device || need.host > room.host) continue;
          fit.ways.push_back({way.name, settings_text(way), tokens});
          longest = tokens;
          return;
        }
      }
    };
    try_ways(whole_ways(device.is_cpu()));
    try_ways(adapter_ways());
    fits.push_back(std::move(fit));
  }
  return fits;
}

}  // namespace antisd::inline plan
