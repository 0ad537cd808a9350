// Remembers the ids of short pieces: words repeat, so most need no merging. One per thread and
// tokenizer, of fixed size; a new piece takes the place of an older one with the same hash.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace antisd {

class PieceCache {
 public:
  static constexpr std::size_t kMaxBytes = 30;
  static constexpr std::size_t kMaxIds = 8;

  // The calling thread's cache for the tokenizer with this number. A thread keeps a few.
  static PieceCache& of_thread(std::uint64_t tokenizer_number);

  struct Entry {
    std::uint8_t length = 0;  // 0: free
    std::uint8_t count = 0;
    char bytes[kMaxBytes];
    TokenId ids[kMaxIds];
  };
  static_assert(sizeof(Entry) == 64, "an entry fills a cache line");

  // Where `piece`, of 1 to kMaxBytes bytes, is or would be.
  Entry& slot(std::string_view piece) {
    return entries_[(hash_bytes(piece) >> 20) & (kEntries - 1)];
  }
  static bool holds(const Entry& entry, std::string_view piece) {
    return entry.length == piece.size() &&
           std::memcmp(entry.bytes, piece.data(), piece.size()) == 0;
  }

 private:
  static constexpr std::size_t kEntries = 1 << 15;  // 2 MB
  std::vector<Entry> entries_ = std::vector<Entry>(kEntries);
  std::uint64_t tokenizer_number_ = 0;
};

}  // namespace antisd
