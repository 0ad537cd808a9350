#include "text/tokenizer/bpe.h"

#include <bit>

#include <fmt/format.h>

#include "core/error.h"
#include "core/utf8.h"
#include "text/tokenizer/merge_queue.h"

namespace antisd::inline text {
namespace {

// Bytes that are printed as themselves; the others get code points from U+0100 on, in order.
bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct SymbolTables {
  std::array<char32_t, 256> of_byte{};
  std::array<int, 0x144> to_byte{};

  SymbolTables() {
    to_byte.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      of_byte[byte] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
      to_byte[of_byte[byte]] = byte;
    }
  }
};

const SymbolTables& symbol_tables() {
  static const SymbolTables tables;
  return tables;
}

constexpr std::size_t kShortPiece = 48;  // symbols; above, the quadratic method is slower

}  // namespace

std::string byte_to_symbol(unsigned char byte) {
  std::string symbol;
  append_utf8(symbol, symbol_tables().of_byte[byte]);
  return symbol;
}

std::string bytes_to_symbols(std::string_view bytes) {
  std::string symbols;
  symbols.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    append_utf8(symbols, symbol_tables().of_byte[static_cast<unsigned char>(c)]);
  }
  return symbols;
}

std::optional<std::string> symbols_to_bytes(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (c >= symbol_tables().to_byte.size() || symbol_tables().to_byte[c] < 0) return std::nullopt;
    bytes += static_cast<char>(symbol_tables().to_byte[c]);
  }
  return bytes;
}

BpeModel::BpeModel(const Vocabulary& vocabulary, const std::vector<Merge>& merges,
                   BpeOptions options, const std::string& where)
    : vocabulary_(&vocabulary), options_(std::move(options)) {
  if (options_.unknown_token) {
    unknown_id_ = vocabulary.find(*options_.unknown_token);
    if (!unknown_id_) {
      throw InputError(
          fmt::format("unk_token \"{}\" is not in the vocabulary", *options_.unknown_token),
          {where, "add it, or set unk_token to null"});
    }
  }
  has_all_bytes_ = true;
  for (int byte = 0; byte < 256; ++byte) {
    const auto id = vocabulary.find(byte_to_symbol(static_cast<unsigned char>(byte)));
    byte_ids_[byte] = id.value_or(-1);
    has_all_bytes_ = has_all_bytes_ && id.has_value();
  }

  pairs_.resize(std::bit_ceil(merges.size() * 2 + 8));
  filter_.resize(pairs_.size() / 8);
  const auto merge_count = static_cast<std::uint32_t>(merges.size());
  results_.resize(merge_count);
  std::string joined;
  for (std::uint32_t rank = 0; rank < merge_count; ++rank) {
    const std::string_view left = merges[rank].left, right = merges[rank].right;
    joined.assign(left).append(right);
    const auto id_of = [&](std::string_view token) {
      if (const auto id = vocabulary.find(token)) return *id;
      throw InputError(fmt::format("merge {} (\"{}\" \"{}\") needs the token \"{}\", which is not "
                                   "in the vocabulary",
                                   rank + 1, left, right, token),
                       {where, "take vocabulary and merges from the same model"});
    };
    const TokenId left_id = id_of(left), right_id = id_of(right);
    if (left.empty() || right.empty()) {
      throw InputError(fmt::format("merge {} has an empty side", rank + 1),
                       {where, "take vocabulary and merges from the same model"});
    }
    results_[rank] = id_of(joined);
    add_pair(pair_key(left_id, right_id), rank, results_[rank]);
  }
}

// A repeated pair keeps its last rank, as in `tokenizers`.
void BpeModel::add_pair(std::uint64_t key, std::uint32_t rank, TokenId result) {
  const std::size_t mask = pairs_.size() - 1;
  std::size_t i = pair_hash(key) & mask;
  while (pairs_[i].rank != kNoRank && pairs_[i].key != key)
    i = (i + 1) & mask;
  pairs_[i] = {key, rank, result};
  const std::size_t bit = filter_bit(key);
  filter_[bit / 64] |= std::uint64_t{1} << bit % 64;
}

void BpeModel::append_symbols(std::string_view piece, std::vector<TokenId>& symbols) const {
  bool unknown_pending = false;
  for (std::size_t position = 0; position < piece.size();) {
    const std::size_t begin = position;
    next_code_point(piece, position);
    const std::string_view character = piece.substr(begin, position - begin);
    if (const auto id = vocabulary_->find(character)) {
      if (unknown_pending) symbols.push_back(*unknown_id_);
      unknown_pending = false;
      symbols.push_back(*id);
      continue;
    }
    if (options_.byte_fallback) {
      std::array<TokenId, 4> bytes{};
      std::size_t known = 0;
      for (; known < character.size(); ++known) {
        const auto id = vocabulary_->find(
            fmt::format("<0x{:02X}>", static_cast<unsigned char>(character[known])));
        if (!id) break;
        bytes[known] = *id;
      }
      if (known == character.size()) {
        // A pending unknown token stays pending, as in `tokenizers`.
        symbols.insert(symbols.end(), bytes.begin(), bytes.begin() + known);
        continue;
      }
    }
    if (!unknown_id_) continue;  // without an unknown token the character is dropped
    if (unknown_pending && !options_.fuse_unknown) symbols.push_back(*unknown_id_);
    unknown_pending = true;
  }
  if (unknown_pending) symbols.push_back(*unknown_id_);
}

void BpeModel::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (options_.ignore_merges) {
    if (const auto id = vocabulary_->find(piece)) {
      ids.push_back(*id);
      return;
    }
  }
  thread_local std::vector<TokenId> symbols;
  symbols.clear();
  append_symbols(piece, symbols);
  merge(symbols, ids);
}

void BpeModel::encode_bytes(std::string_view bytes, std::vector<TokenId>& ids) const {
  if (!has_all_bytes_ || options_.ignore_merges) return encode(bytes_to_symbols(bytes), ids);
  thread_local std::vector<TokenId> symbols;
  symbols.resize(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    symbols[i] = byte_ids_[static_cast<unsigned char>(bytes[i])];
  }
  merge(symbols, ids);
}

void BpeModel::merge(std::vector<TokenId>& symbols, std::vector<TokenId>& ids) const {
  if (symbols.size() <= kShortPiece) return merge_short(symbols, ids);
  merge_long(symbols, ids);
  if (symbols.capacity() > (1 << 20)) symbols = {};  // do not keep the memory of one huge text
}

void BpeModel::merge_short(std::vector<TokenId>& symbols, std::vector<TokenId>& ids) const {
  if (symbols.empty()) return;
  struct Best {
    std::uint32_t rank;
    TokenId result;
  };
  std::array<Best, kShortPiece> next;  // of the symbol and the next one
  std::size_t count = symbols.size();
  const auto look_up = [&](std::size_t i) {
    const Pair& pair = find_pair(symbols[i], symbols[i + 1]);
    next[i] = {pair.rank, pair.result};
  };
  for (std::size_t i = 0; i + 1 < count; ++i)
    look_up(i);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (next[i].rank < next[best].rank) best = i;
    }
    if (next[best].rank == kNoRank) break;
    symbols[best] = next[best].result;
    --count;
    for (std::size_t i = best + 1; i < count; ++i)
      symbols[i] = symbols[i + 1];
    for (std::size_t i = best + 1; i + 1 < count; ++i)
      next[i] = next[i + 1];
    if (best + 1 < count) look_up(best);
    if (best > 0) look_up(best - 1);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + count);
}

void BpeModel::merge_long(const std::vector<TokenId>& symbols, std::vector<TokenId>& ids) const {
  constexpr std::uint32_t kEnd = UINT32_MAX;
  struct Node {
    TokenId id;
    std::uint32_t previous, next;
    std::uint32_t rank;  // of the pair with the next one; kNoRank also if it was merged
  };
  if (symbols.size() >= kEnd) {
    throw InputError("a piece of text with more than 4 G symbols", {"", "split the text"});
  }
  const auto count = static_cast<std::uint32_t>(symbols.size());
  std::vector<Node> nodes(count);
  thread_local std::vector<std::uint32_t> list_of_rank;
  if (list_of_rank.size() < results_.size())
    list_of_rank.resize(results_.size(), MergeQueue::kNone);
  MergeQueue queue(list_of_rank);
  const auto set_rank = [&](std::uint32_t at, TokenId right) {
    nodes[at].rank = find_pair(nodes[at].id, right).rank;
    if (nodes[at].rank != kNoRank) queue.push(nodes[at].rank, at);
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    nodes[i] = {symbols[i], i == 0 ? kEnd : i - 1, is_last ? kEnd : i + 1, kNoRank};
    if (!is_last) set_rank(i, symbols[i + 1]);
  }
  while (!queue.empty()) {
    const auto [rank, at] = queue.pop();
    Node& node = nodes[at];
    if (node.rank != rank) continue;  // one side has changed
    Node& right = nodes[node.next];
    node.id = results_[rank];
    node.next = right.next;
    node.rank = right.rank = kNoRank;
    if (node.next != kEnd) {
      nodes[node.next].previous = at;
      set_rank(at, nodes[node.next].id);
    }
    if (node.previous != kEnd) set_rank(node.previous, node.id);
  }
  for (std::uint32_t i = 0; i != kEnd; i = nodes[i].next)
    ids.push_back(nodes[i].id);
}

}  // namespace antisd::inline text
