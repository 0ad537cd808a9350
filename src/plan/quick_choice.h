// How a machine trains a model in a first run, for `quickstart`: the whole model, with AdamW's
// state on the host, or adapters; lengths, batch and steps. A function of numbers alone.
//
//   const ModelShape shape = read_model_shape("Qwen3-4B/config.json");
//   const QuickChoice choice =
//       choose_quick(shape, {.gpu = true, .memory = 24e9, .host = 60e9}, /*given=*/{});
//   if (!choice.fits) print(choice.reason, choice.remedy);
//   for (const QuickSetting& setting : choice.settings) print(setting.key, setting.value);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "model/model_shape.h"

namespace antisd::inline plan {

struct QuickMachine {
  bool gpu = false;
  double memory = 0;  // bytes that are free on the device
  double host = 0;    // bytes of the host that optim.offload may take; a CPU run has none
};

struct QuickSetting {
  std::string key;
  std::string value;  // as TOML
  std::string why;    // one sentence for the file's reader
};

struct QuickChoice {
  bool fits = false;
  std::string way;                     // "whole", "adapters over nf4", ...
  std::vector<QuickSetting> settings;  // those of the sections model, rollout, method, ...
  std::int64_t steps = 0, held_out = 0;
  double needed = 0, on_host = 0;  // bytes
  std::string reason, remedy;      // if it does not fit: what it needs, and what would fit
};

// The longest sequences first, of these the way that costs least. `given`: the user's key=value
// settings, which are not chosen and count in the plan.
QuickChoice choose_quick(const ModelShape& shape, const QuickMachine& machine,
                         const std::vector<std::string>& given, std::int64_t steps = 0);

// What a CPU reaches, measured.
struct CpuRates {
  double flops = 0;  // multiplications and additions of large fp32 products, per second
  double read = 0;   // bytes per second
};

// Seconds of a training step on a CPU with responses of half the limit: products at half of the
// measured rate, and each sampled token reads all weights once for the whole batch.
double cpu_step_seconds(const ModelShape& shape, const RunConfig& config, const CpuRates& rates);

}  // namespace antisd::inline plan
