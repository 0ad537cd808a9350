#include "ops/optest/attention_layout.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace antisd::inline ops {

AttentionLayout TestLayout::on(at::Device device) const {
  const auto integers = [&](const std::vector<std::int32_t>& values) {
    return at::tensor(at::ArrayRef<std::int32_t>(values), at::kInt).to(device);
  };
  AttentionLayout there = layout;
  there.device_query_offsets = integers(layout.query_offsets);
  there.device_key_offsets = integers(layout.key_offsets);
  if (shared)
    there.key_rows = at::tensor(at::ArrayRef<std::int64_t>(key_rows), at::kLong).to(device);
  return there;
}

TestLayout test_layout(const std::vector<std::int32_t>& lengths, std::int32_t prefix) {
  TestLayout result;
  AttentionLayout& layout = result.layout;
  result.shared = prefix > 0;
  layout.query_offsets = layout.key_offsets = {0};
  const auto add = [&](std::int32_t length, std::int32_t before) {
    for (std::int64_t row = 0; row < before; ++row)
      result.key_rows.push_back(row);
    for (std::int32_t i = 0; i < length; ++i)
      result.key_rows.push_back(result.tokens++);
    layout.query_offsets.push_back(static_cast<std::int32_t>(result.tokens));
    layout.key_offsets.push_back(static_cast<std::int32_t>(result.key_rows.size()));
    layout.longest_query = std::max<std::int64_t>(layout.longest_query, length);
    layout.longest_key = std::max<std::int64_t>(layout.longest_key, length + before);
  };
  if (result.shared) add(prefix, 0);
  for (const std::int32_t length : lengths)
    add(length, prefix);
  return result;
}

}  // namespace antisd::inline ops
