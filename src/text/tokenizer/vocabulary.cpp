#include "text/tokenizer/vocabulary.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline text {

std::uint64_t hash_bytes(std::string_view bytes) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  std::uint64_t hash = bytes.size() * kFactor;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 32;
  };
  const char* data = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, data += 8) {
    std::uint64_t word;
    std::memcpy(&word, data, 8);
    mix(word);
  }
  if (left > 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, left);
    mix(word);
  }
  return hash * kFactor ^ hash >> 29;
}

void Vocabulary::add(std::string_view token, std::int64_t id, const std::string& where) {
  if (id < 0 || id > kMaxTokenId) {
    throw InputError(fmt::format("the token \"{}\" has the id {}", token, id),
                     {where, fmt::format("ids go from 0 to {}", kMaxTokenId)});
  }
  if (id >= end_id()) entries_.resize(id + 1);
  if (has(static_cast<TokenId>(id))) {
    throw InputError(fmt::format("the tokens \"{}\" and \"{}\" have the same id {}",
                                 this->token(static_cast<TokenId>(id)), token, id),
                     {where, "give every token its own id"});
  }
  if (bytes_.size() + token.size() >= kAbsent) {
    throw InputError("the tokens have more than 4 GB in all", {where, "use a smaller vocabulary"});
  }
  entries_[id] = {static_cast<std::uint32_t>(bytes_.size()),
                  static_cast<std::uint32_t>(token.size())};
  bytes_ += token;
  ++count_;
}

void Vocabulary::finish(const std::string& where) {
  slots_.assign(std::bit_ceil(static_cast<std::size_t>(count_) * 2 + 2), Slot{});
  const std::size_t mask = slots_.size() - 1;
  for (TokenId id = 0; id < end_id(); ++id) {
    if (!has(id)) continue;
    const std::uint64_t hash = hash_bytes(token(id));
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t i = hash & mask;
    for (; slots_[i].id >= 0; i = (i + 1) & mask) {
      if (slots_[i].tag == tag && token(slots_[i].id) == token(id)) {
        throw InputError(
            fmt::format("the token \"{}\" has two ids, {} and {}", token(id), slots_[i].id, id),
            {where, "list every token once"});
      }
    }
    slots_[i] = {tag, id};
  }
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint64_t hash = hash_bytes(token);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask; slots_[i].id >= 0; i = (i + 1) & mask) {
    if (slots_[i].tag == tag && this->token(slots_[i].id) == token) return slots_[i].id;
  }
  return std::nullopt;
}

}  // namespace antisd::inline text
