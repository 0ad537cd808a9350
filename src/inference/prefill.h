// Chunks of prompts in one pass of the model over the cache.
#pragma once

#include <span>

#include "model/kv_view.h"

namespace antisd::inline inference {

struct TokenChunk {
  std::span<const std::int32_t> tokens;  // of the whole sequence up to the chunk's end
  std::int64_t begin = 0;                // the first new token
  std::span<const std::int32_t> pages;
};

CacheExtension make_extension(std::span<const TokenChunk> chunks, at::Device device);

}  // namespace antisd::inline inference
