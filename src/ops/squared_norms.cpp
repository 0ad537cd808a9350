#include "ops/squared_norms.h"

#include <array>

#include "core/check.h"
#include "ops/adamw.h"
#include "ops/cpu_adamw.h"

namespace antisd::inline ops {
namespace {

std::vector<double> squares_on_cpu(const at::Tensor& tensor) {
  const bool is_bf16 = tensor.scalar_type() == at::kBFloat16;
  ANTISD_CHECK(tensor.is_contiguous() && (is_bf16 || tensor.scalar_type() == at::kFloat));
  const void* values = tensor.const_data_ptr();
  const std::int64_t count = tensor.numel(), blocks = (count + kUpdateBlock - 1) / kUpdateBlock;
  std::vector<double> sums(static_cast<std::size_t>(blocks));
  at::parallel_for(0, blocks, 8, [&](std::int64_t begin, std::int64_t end) {
    std::array<float, kUpdateBlock> widened;
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t at = block * kUpdateBlock, size = std::min(kUpdateBlock, count - at);
      const float* part = static_cast<const float*>(values) + at;
      if (is_bf16) {
        cpu_widen(static_cast<const std::uint16_t*>(values) + at, size, widened.data());
        part = widened.data();
      }
      sums[static_cast<std::size_t>(block)] = cpu_sum_of_squares(part, size);
    }
  });
  return sums;
}

}  // namespace

std::vector<std::vector<double>> fetch_partial_squares(std::span<const at::Tensor> tensors) {
  std::vector<std::vector<double>> result;
  if (tensors.empty()) return result;
  if (tensors[0].is_cpu()) {
    for (const at::Tensor& tensor : tensors)
      result.push_back(squares_on_cpu(tensor));
    return result;
  }
  const auto norms = at::_foreach_norm(at::ArrayRef(tensors.data(), tensors.size()), 2, at::kFloat);
  const at::Tensor squares = at::stack(norms).to(at::kDouble).square().to(at::kCPU);
  const auto* values = squares.const_data_ptr<double>();
  for (std::int64_t i = 0; i < squares.numel(); ++i)
    result.push_back({values[i]});
  return result;
}

}  // namespace antisd::inline ops
