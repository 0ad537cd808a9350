// Caches the ids of short pieces: words repeat, so most need no merging. One per thread and
// tokenizer, of fixed size; a new piece replaces an older one with the same hash.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocabulary.h"

namespace antisd::inline text {

class PieceCache {
 public:
  static constexpr std::size_t kMaxBytes = 24;
  static constexpr std::size_t kMaxIds = 9;

  // The calling thread's cache for the tokenizer with this number. A thread keeps a few.
  static PieceCache& of_thread(std::uint64_t tokenizer_number);

  // A piece of 1 to kMaxBytes bytes, padded with zeros.
  struct Key {
    explicit Key(std::string_view piece);
    std::array<std::uint64_t, 3> words{};
    std::uint8_t length;
  };

  struct Entry {
    std::array<std::uint64_t, 3> words{};
    std::uint8_t length = 0;  // 0: free
    std::uint8_t count = 0;
    TokenId ids[kMaxIds];

    bool holds(const Key& key) const { return length == key.length && words == key.words; }
  };
  static_assert(sizeof(Entry) == 64, "an entry fills a cache line");

  // The entry where the piece is or would be.
  Entry& slot(const Key& key) {
    constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
    std::uint64_t hash = (key.words[0] ^ key.length) * kFactor;
    hash = (hash ^ hash >> 32 ^ key.words[1]) * kFactor;
    hash = (hash ^ hash >> 32 ^ key.words[2]) * kFactor;
    return entries_[hash >> (64 - kLogEntries)];
  }

 private:
  static constexpr int kLogEntries = 15;  // 2 MB
  std::vector<Entry> entries_ = std::vector<Entry>(1 << kLogEntries);
  std::uint64_t tokenizer_number_ = 0;
};

inline PieceCache::Key::Key(std::string_view piece)
    : length(static_cast<std::uint8_t>(piece.size())) {
  // A copy of variable length is a function call; most pieces have fewer than nine bytes.
  const char* data = piece.data();
  std::size_t left = piece.size(), word = 0;
  for (; left >= 8; left -= 8, data += 8)
    std::memcpy(&words[word++], data, 8);
  if (left >= 4) {
    std::uint32_t low, high;  // they overlap
    std::memcpy(&low, data, 4);
    std::memcpy(&high, data + left - 4, 4);
    words[word] = low | static_cast<std::uint64_t>(high) << (8 * (left - 4));
  } else if (left > 0) {
    const auto byte = [&](std::size_t i) {
      return std::uint64_t{static_cast<unsigned char>(data[i])} << (8 * i);
    };
    words[word] = byte(0) | byte(left / 2) | byte(left - 1);
  }
}

}  // namespace antisd::inline text
