#include "text/tokenizer/piece_cache.h"

#include <algorithm>

namespace antisd::inline text {

PieceCache& PieceCache::of_thread(std::uint64_t tokenizer_number) {
  constexpr std::size_t kMaxCaches = 4;
  thread_local std::vector<std::unique_ptr<PieceCache>> caches;  // last used first
  const auto found = std::find_if(caches.begin(), caches.end(), [&](const auto& cache) {
    return cache->tokenizer_number_ == tokenizer_number;
  });
  if (found != caches.end()) {
    std::rotate(caches.begin(), found, found + 1);
  } else {
    if (caches.size() == kMaxCaches) caches.pop_back();
    caches.insert(caches.begin(), std::make_unique<PieceCache>());
    caches.front()->tokenizer_number_ = tokenizer_number;
  }
  return *caches.front();
}

}  // namespace antisd::inline text
