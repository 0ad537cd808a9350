#include "inference/finite_scores.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline inference {

std::string find_non_finite_weight(const CausalLm& model) {
  const at::NoGradGuard no_gradients;
  for (const auto& [parameter, slice] : model.parameters().stored_tensors()) {
    // A quantised weight with a NaN or infinity has such a scale.
    const at::Tensor weight = parameter->quantized.defined()
                                  ? slice->of(parameter->quantized).scales
                                  : slice->of(parameter->value);
    // If a value is NaN, so are the minimum and the maximum.
    const bool is_finite =
        std::isfinite(weight.amax().item<float>()) && std::isfinite(weight.amin().item<float>());
    if (!is_finite) return slice->name;
  }
  return "";
}

void check_finite(const CausalLm& model, std::span<const TokenScores> scores,
                  const std::function<std::string(std::size_t index)>& name_of) {
  const auto first_bad = [](const std::vector<float>& values) {
    return std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); }) -
           values.begin();
  };
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::ptrdiff_t position =
        std::min(first_bad(scores[i].logp), first_bad(scores[i].entropy));
    if (position == std::ssize(scores[i].logp)) continue;
    const std::string weight = find_non_finite_weight(model);
    throw RunError(
        fmt::format("{}: the model gives no finite number for token {} of the response", name_of(i),
                    position),
        {.remedy = weight.empty()
                       ? "the weights are finite, so its activations leave the range: use another "
                         "--dtype"
                       : fmt::format("its weight {} holds NaN or infinity: fetch the model again, "
                                     "or use an earlier checkpoint",
                                     weight)});
  }
}

}  // namespace antisd::inline inference
