// Token strings and their ids: one block of bytes, a table by id and a hash index, because a
// vocabulary of 250,000 entries must load in a fraction of a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline text {

using TokenId = std::int32_t;

inline constexpr TokenId kMaxTokenId = (1 << 22) - 1;

std::uint64_t hash_bytes(std::string_view bytes);

class Vocabulary {
 public:
  // Throws InputError with `where` for a repeated token or id, or an id out of range. Call finish()
  // after the last one.
  void add(std::string_view token, std::int64_t id, const std::string& where);
  void finish(const std::string& where);

  std::optional<TokenId> find(std::string_view token) const;
  bool has(TokenId id) const { return id >= 0 && id < end_id() && entries_[id].length != kAbsent; }
  std::string_view token(TokenId id) const {  // empty for a gap
    return has(id) ? std::string_view(bytes_).substr(entries_[id].offset, entries_[id].length)
                   : std::string_view();
  }
  TokenId end_id() const { return static_cast<TokenId>(entries_.size()); }  // largest id + 1
  TokenId count() const { return count_; }

 private:
  static constexpr std::uint32_t kAbsent = UINT32_MAX;
  struct Entry {
    std::uint32_t offset = 0;
    std::uint32_t length = kAbsent;
  };
  struct Slot {
    std::uint32_t tag = 0;  // upper half of the hash
    TokenId id = -1;
  };

  std::string bytes_;
  std::vector<Entry> entries_;  // by id
  std::vector<Slot> slots_;     // open addressing, a power of two, at most half full
  TokenId count_ = 0;
};

}  // namespace antisd::inline text
