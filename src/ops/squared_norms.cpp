#include "ops/squared_norms.h"

#include <array>
#include <numeric>

#include "core/check.h"
#include "ops/cpu_adamw.h"

namespace antisd::inline ops {
namespace {

constexpr std::int64_t kNormBlock = 4096;

double squared_norm_on_cpu(const at::Tensor& tensor) {
  const bool is_bf16 = tensor.scalar_type() == at::kBFloat16;
  ANTISD_CHECK(tensor.is_contiguous() && (is_bf16 || tensor.scalar_type() == at::kFloat));
  const void* values = tensor.const_data_ptr();
  const std::int64_t count = tensor.numel(), blocks = (count + kNormBlock - 1) / kNormBlock;
  std::vector<double> sums(static_cast<std::size_t>(blocks));
  at::parallel_for(0, blocks, 8, [&](std::int64_t begin, std::int64_t end) {
    std::array<float, kNormBlock> widened;
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t at = block * kNormBlock, size = std::min(kNormBlock, count - at);
      const float* part = static_cast<const float*>(values) + at;
      if (is_bf16) {
        cpu_widen(static_cast<const std::uint16_t*>(values) + at, size, widened.data());
        part = widened.data();
      }
      sums[static_cast<std::size_t>(block)] = cpu_sum_of_squares(part, size);
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

std::vector<double> fetch_squared_norms(std::span<const at::Tensor> tensors) {
  std::vector<double> result;
  if (tensors.empty()) return result;
  if (tensors[0].is_cpu()) {
    for (const at::Tensor& tensor : tensors)
      result.push_back(squared_norm_on_cpu(tensor));
    return result;
  }
  const auto norms = at::_foreach_norm(at::ArrayRef(tensors.data(), tensors.size()), 2, at::kFloat);
  const at::Tensor squares = at::stack(norms).to(at::kDouble).square().to(at::kCPU);
  const auto* values = squares.const_data_ptr<double>();
  return {values, values + squares.numel()};
}

}  // namespace antisd::inline ops
