#include "ops/attention_choice.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>

#include <fmt/format.h>

#include "ops/ragged_runs.h"

#ifdef ANTISD_CUDA
#include <cuda_runtime.h>

#include "core/check.h"
#include "ops/cuda_ragged_plan.h"
#endif

namespace antisd::inline ops {
namespace {

// torch's cuDNN builds a plan for every new length and never frees it: it gets the lengths that
// come again. It is a tenth faster than ragged attention.
constexpr std::int64_t kDenseLength = 256;

// Below it attention is a small part of a pass, and the copies and plans of the ragged path take
// more than it saves.
constexpr std::int64_t kLeastRaggedKeys = 512;

// What was measured: cuDNN's ragged kernels on Hopper. Compute capability 8.x and 12.x lack the
// instructions that make cuDNN faster.
bool has_ragged(const AttentionCard& card) {
  return card.capability / 10 == 9 && card.cudnn >= 91'900;
}
bool has_dense(const AttentionCard& card) {
  return card.capability / 10 == 9 || card.capability / 10 == 10;
}

bool suits_dense(const at::Tensor& q, const AttentionLayout& layout, std::int64_t window) {
  const std::int64_t length = layout.longest_query;
  if (window > 0 || layout.key_rows.defined() || length % kDenseLength != 0 || q.size(2) > 128 ||
      q.size(2) % 8 != 0) {
    return false;
  }
  for (std::size_t i = 1; i < layout.query_offsets.size(); ++i) {
    if (layout.query_offsets[i] - layout.query_offsets[i - 1] != length) return false;
  }
  return true;
}

bool is_ragged_size(std::int64_t head_dim) {
  return head_dim == 64 || head_dim == 128;
}

bool suits_ragged(const at::Tensor& q, const AttentionLayout& layout) {
  if (layout.longest_key < kLeastRaggedKeys || !is_ragged_size(q.size(2))) return false;
  // Its offsets are 32-bit numbers of elements; keys have at most as many heads as queries.
  const std::int64_t rows = std::max(layout.query_offsets.back(), layout.key_offsets.back());
  if ((rows + 1) * q.size(1) * q.size(2) > std::numeric_limits<std::int32_t>::max()) return false;
  for (std::size_t i = 1; i < layout.query_offsets.size(); ++i) {
    if (layout.query_offsets[i] == layout.query_offsets[i - 1]) return false;  // not before 9.25
  }
  return true;
}

}  // namespace

AttentionCode choose_attention(const AttentionCard& card, const at::Tensor& q,
                               const AttentionLayout& layout, std::int64_t window) {
  if (q.scalar_type() == at::kFloat) return AttentionCode::kPacked;
  if (has_dense(card) && suits_dense(q, layout, window)) return AttentionCode::kDense;
  if (has_ragged(card) && suits_ragged(q, layout)) return AttentionCode::kRagged;
  return AttentionCode::kPacked;
}

// In any order cuDNN is 1.3 to 1.8 times as fast as flash attention. In a fixed order it writes the
// gradient of every score of a plan's rectangle, which a window or a prefix makes much larger than
// what is needed (bench/RESULTS.md).
AttentionCode choose_ragged_backward(SumOrder sums, std::int64_t window, bool prefix,
                                     bool too_long) {
  const bool slow = window > 0 || prefix || too_long;
  return sums == SumOrder::kFixed && slow ? AttentionCode::kPacked : AttentionCode::kRagged;
}

std::string attention_text(const AttentionCard& card) {
  const std::string version =
      fmt::format("cuDNN {}.{}.{}", card.cudnn / 10'000, card.cudnn / 100 % 100, card.cudnn % 100);
  if (has_ragged(card)) {
    return fmt::format(
        "{} for sequences from {} tokens on with heads of 64 or 128, flash "
        "attention for others",
        version, kLeastRaggedKeys);
  }
  if (has_dense(card))
    return fmt::format("{} for equal lengths, flash attention for others", version);
  return "flash attention";
}

bool may_be_ragged([[maybe_unused]] at::Device device, at::ScalarType dtype,
                   std::int64_t head_dim) {
  if (dtype == at::kFloat || !is_ragged_size(head_dim)) return false;
#ifdef ANTISD_CUDA
  if (device.is_cuda() && device.has_index()) return has_ragged(attention_card(device.index()));
#endif
  return false;
}

#ifdef ANTISD_CUDA
AttentionCard attention_card(int device) {
  constexpr int kMostDevices = 64;
  static std::array<std::once_flag, kMostDevices> once;
  static std::array<AttentionCard, kMostDevices> cards;
  ANTISD_CHECK(device >= 0 && device < kMostDevices);
  std::call_once(once[device], [device] {
    int major = 0, minor = 0;
    ANTISD_CHECK(
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess);
    cards[device] = {major * 10 + minor, cudnn_version()};
  });
  return cards[device];
}
#endif

}  // namespace antisd::inline ops
