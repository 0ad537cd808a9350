// Which of the models that recipes name a machine can train, and how.
//
//   for (const ModelFit& fit : model_fits({.device = 139e9, .host = 100e9}, at::kCUDA))
//     print(fit.model, fit.text());
#pragma once

#include <string>
#include <vector>

#include "plan/plan_input.h"

namespace antisd::inline plan {

// A way to train that fits, for sequences of up to so many tokens.
struct FittingWay {
  std::string name;      // "whole", "adapters"
  std::string settings;  // "optim.offload=all"; empty: the defaults
  std::int64_t tokens = 0;
};

struct ModelFit {
  std::string model;
  // The whole model if any length of it fits, and adapters if they allow longer sequences.
  std::vector<FittingWay> ways;
  double least = 0;  // bytes that the way with the least memory needs

  std::string text() const;
};

// Steps as the paper has them, 32 x 8 responses; sequences of 32K tokens, else 16K or 8K.
std::vector<ModelFit> model_fits(const Room& room, at::Device device);

}  // namespace antisd::inline plan
