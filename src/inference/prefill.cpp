#include "inference/prefill.h"

namespace antisd::inline inference {

CacheExtension make_extension(std::span<const TokenChunk> chunks, at::Device device) {
  std::vector<std::int64_t> ids, slots, key_rows;
  std::vector<std::int32_t> positions;
  CacheExtension out;
  AttentionLayout& layout = out.layout;
  layout.query_offsets = layout.key_offsets = {0};
  for (const TokenChunk& chunk : chunks) {
    const auto end = static_cast<std::int64_t>(chunk.tokens.size());
    for (std::int64_t i = 0; i < end; ++i) {
      key_rows.push_back(std::int64_t{chunk.pages[i / kPageTokens]} * kPageTokens +
                         i % kPageTokens);
      if (i < chunk.begin) continue;
      ids.push_back(chunk.tokens[i]);
      positions.push_back(static_cast<std::int32_t>(i));
      slots.push_back(key_rows.back());
    }
    layout.query_offsets.push_back(static_cast<std::int32_t>(ids.size()));
    layout.key_offsets.push_back(static_cast<std::int32_t>(key_rows.size()));
    layout.longest_query = std::max(layout.longest_query, end - chunk.begin);
    layout.longest_key = std::max(layout.longest_key, end);
  }
  const auto longs = [&](const std::vector<std::int64_t>& values) {
    return at::tensor(at::ArrayRef<std::int64_t>(values), at::kLong).to(device);
  };
  const auto ints = [&](const std::vector<std::int32_t>& values) {
    return at::tensor(at::ArrayRef<std::int32_t>(values), at::kInt).to(device);
  };
  out.ids = longs(ids);
  out.positions = ints(positions);
  out.slots = longs(slots);
  layout.device_query_offsets = ints(layout.query_offsets);
  layout.device_key_offsets = ints(layout.key_offsets);
  layout.key_rows = longs(key_rows);
  out.longest_sequence = layout.longest_key;
  return out;
}

}  // namespace antisd::inline inference
