#include "model/not_finite.h"

#include <ATen/ATen.h>

namespace antisd::inline model {

bool all_finite(const at::Tensor& tensor) {
  constexpr std::int64_t kPart = 1 << 22;  // elements at a time: isfinite() allocates a copy
  const at::Tensor flat = tensor.detach().flatten();
  for (std::int64_t begin = 0; begin < flat.size(0); begin += kPart) {
    if (!flat.slice(0, begin, begin + kPart).isfinite().all().item<bool>()) return false;
  }
  return true;
}

}  // namespace antisd::inline model
