#include "text/tokenizer/tokenizer.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/utf8.h"
#include "text/tokenizer/piece_cache.h"
#include "text/tokenizer/tokenizer_parts.h"

namespace antisd::inline text {

void Tokenizer::Parts::encode_piece(std::string_view piece, std::vector<TokenId>& ids) const {
  const bool bytes = pre_tokenizer.yields_bytes();
  if (const BpeModel* bpe = std::get_if<BpeModel>(&model)) {
    return bytes ? bpe->encode_bytes(piece, ids) : bpe->encode(piece, ids);
  }
  const std::string& unknown = std::get<WordLevelModel>(model).unknown_token;
  auto id = bytes ? vocabulary.find(bytes_to_symbols(piece)) : vocabulary.find(piece);
  if (!id) id = vocabulary.find(unknown);
  if (!id) {
    throw InputError(
        fmt::format("\"{}\" is not in the vocabulary, and neither is the unknown token "
                    "\"{}\"",
                    piece, unknown),
        {where, "add the unknown token to the vocabulary"});
  }
  ids.push_back(*id);
}

void Tokenizer::Parts::encode_text(std::string_view text, bool at_start,
                                   std::vector<TokenId>& ids) const {
  PieceCache& cache = PieceCache::of_thread(number);
  pre_tokenizer.split(text, at_start, [&](std::string_view piece) {
    if (piece.size() > PieceCache::kMaxBytes) return encode_piece(piece, ids);
    const PieceCache::Key key(piece);
    PieceCache::Entry& entry = cache.slot(key);
    if (entry.holds(key)) {
      ids.insert(ids.end(), entry.ids, entry.ids + entry.count);
      return;
    }
    const std::size_t before = ids.size();
    encode_piece(piece, ids);
    const std::size_t count = ids.size() - before;
    if (count > PieceCache::kMaxIds) return;
    entry.words = key.words;
    entry.length = key.length;
    entry.count = static_cast<std::uint8_t>(count);
    std::copy(ids.begin() + before, ids.end(), entry.ids);
  });
}

std::string_view Tokenizer::Parts::token(TokenId id) const {
  if (const AddedToken* added = added_tokens.find(id)) return added->decoded;
  return vocabulary.token(id);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  const Parts& parts = *parts_;
  if (const auto bad = find_invalid_utf8(text)) {
    throw InputError(fmt::format("the text is not valid UTF-8 at byte {}", *bad),
                     {"", "convert it to UTF-8"});
  }
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + 8);
  if (add_special_tokens) ids = parts.post_processor.before;
  const auto encode_normalized = [&](std::string_view segment, bool at_start) {
    if (segment.empty()) return;
    if (!parts.added_tokens.looks_for(/*normalized=*/true)) {
      return parts.encode_text(segment, at_start, ids);
    }
    parts.added_tokens.split(segment, true, [&](std::string_view piece, const AddedToken* token) {
      if (token != nullptr) {
        ids.push_back(token->id);
      } else {
        parts.encode_text(piece, at_start && piece.data() == segment.data(), ids);
      }
    });
  };
  parts.added_tokens.split(text, false, [&](std::string_view piece, const AddedToken* token) {
    const bool at_start = piece.data() == text.data();
    if (token != nullptr) {
      ids.push_back(token->id);
    } else if (parts.normalizer.leaves(piece)) {
      encode_normalized(piece, at_start);
    } else {
      encode_normalized(parts.normalizer.apply(piece), at_start);
    }
  });
  if (add_special_tokens) {
    const auto& behind = parts.post_processor.behind;
    ids.insert(ids.end(), behind.begin(), behind.end());
  }
  return ids;
}

void Tokenizer::check_id(TokenId id) const {
  if (id >= 0 && id < parts_->end_id) return;
  throw InputError(fmt::format("the id {} is not in the vocabulary", id),
                   {parts_->where, fmt::format("ids go from 0 to {}", parts_->end_id - 1)});
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  const Parts& parts = *parts_;
  const bool joins_bytes = parts.decoder.is_byte_level();
  std::string bytes;
  std::vector<std::string> tokens;
  for (const TokenId id : ids) {
    check_id(id);
    const AddedToken* added = parts.added_tokens.find(id);
    if (skip_special_tokens && added != nullptr && added->skipped) continue;
    const std::string_view token = parts.token(id);
    if (token.empty()) continue;  // a gap in the ids
    if (joins_bytes) {
      bytes += TokenDecoder::token_bytes(token);
    } else {
      tokens.emplace_back(token);
    }
  }
  std::string text =
      joins_bytes ? replace_invalid_utf8(bytes) : parts.decoder.decode(std::move(tokens));
  return parts.cleans_up_spaces ? clean_up_spaces(std::move(text)) : text;
}

TokenId Tokenizer::vocabulary_size() const {
  return parts_->end_id;
}

std::optional<TokenId> Tokenizer::token_to_id(std::string_view token) const {
  if (const AddedToken* added = parts_->added_tokens.find(token)) return added->id;
  return parts_->vocabulary.find(token);
}

std::string Tokenizer::id_to_token(TokenId id) const {
  check_id(id);
  return std::string(parts_->token(id));
}

bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* added = parts_->added_tokens.find(id);
  return added != nullptr && added->special;
}

const std::map<std::string, std::string>& Tokenizer::special_tokens() const {
  return parts_->config.special_tokens;
}

const std::vector<std::string>& Tokenizer::additional_special_tokens() const {
  return parts_->config.additional_special_tokens;
}

std::optional<TokenId> Tokenizer::special_token_id(const std::string& name) const {
  const auto found = parts_->config.special_tokens.find(name);
  if (found == parts_->config.special_tokens.end()) return std::nullopt;
  if (const auto id = token_to_id(found->second)) return id;
  throw InputError(fmt::format("{} is \"{}\", which is not in the vocabulary", name, found->second),
                   {parts_->config.where, "name a token of the vocabulary, or add this one"});
}

}  // namespace antisd::inline text
