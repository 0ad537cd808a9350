// Byte-pair encoding: turns a piece of text into ids by merging neighbours in the order of rank.
//
// Short pieces search for the best pair repeatedly; long ones keep the pairs in queues by rank, so
// that a megabyte of one letter takes no longer than a megabyte of words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocabulary.h"

namespace antisd::inline text {

// The printable character for a byte in byte-level vocabularies, and back.
std::string byte_to_symbol(unsigned char byte);
std::string bytes_to_symbols(std::string_view bytes);
// Nothing if a character does not stand for a byte.
std::optional<std::string> symbols_to_bytes(std::string_view text);

struct BpeOptions {
  std::optional<std::string> unknown_token;
  bool fuse_unknown = false;   // one unknown token for a run of unknown characters
  bool byte_fallback = false;  // <0xHH> for the bytes of an unknown character
  bool ignore_merges = false;  // a piece that is a token is that token
};

struct Merge {
  std::string_view left, right;
};

class BpeModel {
 public:
  BpeModel() = default;
  // Throws InputError with `where` for merges of unknown tokens and the like. `vocabulary` must
  // outlive the model at the same address.
  BpeModel(const Vocabulary& vocabulary, const std::vector<Merge>& merges, BpeOptions options,
           const std::string& where);

  // Appends the ids of a piece of valid UTF-8.
  void encode(std::string_view piece, std::vector<TokenId>& ids) const;
  // The same for the byte-level form of `bytes`, without writing it out.
  void encode_bytes(std::string_view bytes, std::vector<TokenId>& ids) const;

 private:
  static constexpr std::uint32_t kNoRank = UINT32_MAX;
  struct Pair {
    std::uint64_t key = UINT64_MAX;  // left << 32 | right
    std::uint32_t rank = kNoRank;
    TokenId result = -1;
  };

  static std::uint64_t pair_key(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }
  static std::size_t pair_hash(std::uint64_t key) {
    key *= 0x9E3779B97F4A7C15;
    return key ^ key >> 32;
  }
  void add_pair(std::uint64_t key, std::uint32_t rank, TokenId result);
  // A pair without a rank if the two do not merge.
  const Pair& find_pair(TokenId left, TokenId right) const {
    static constexpr Pair kNone;
    const std::uint64_t key = pair_key(left, right);
    const std::size_t bit = filter_bit(key);
    if ((filter_[bit / 64] >> bit % 64 & 1) == 0) return kNone;
    const std::size_t mask = pairs_.size() - 1;
    std::size_t i = pair_hash(key) & mask;
    while (pairs_[i].rank != kNoRank && pairs_[i].key != key)
      i = (i + 1) & mask;
    return pairs_[i];
  }
  std::size_t filter_bit(std::uint64_t key) const {
    return (key * 0xD6E8FEB86659FD93 >> 24) & (filter_.size() * 64 - 1);
  }
  void append_symbols(std::string_view piece, std::vector<TokenId>& symbols) const;
  void merge(std::vector<TokenId>& symbols, std::vector<TokenId>& ids) const;
  void merge_short(std::vector<TokenId>& symbols, std::vector<TokenId>& ids) const;
  void merge_long(const std::vector<TokenId>& symbols, std::vector<TokenId>& ids) const;

  const Vocabulary* vocabulary_ = nullptr;
  BpeOptions options_;
  std::optional<TokenId> unknown_id_;
  std::vector<Pair> pairs_;  // open addressing, a power of two, at most half full
  // One bit per pair by another hash: most neighbours are not a pair, and this fits in the cache.
  std::vector<std::uint64_t> filter_;
  std::vector<TokenId> results_;  // by rank
  std::array<TokenId, 256> byte_ids_{};
  bool has_all_bytes_ = false;  // every byte's symbol is a token
};

}  // namespace antisd::inline text
