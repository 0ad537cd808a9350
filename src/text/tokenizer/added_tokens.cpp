#include "text/tokenizer/added_tokens.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/utf8.h"
#include "text/tokenizer/json_fields.h"
#include "text/tokenizer/unicode.h"

namespace antisd::inline text {
namespace {

constexpr std::size_t kMaxContentBytes = 1024;

std::size_t previous_start(std::string_view text, std::size_t position) {
  do {
    --position;
  } while (position > 0 && (static_cast<unsigned char>(text[position]) & 0xC0) == 0x80);
  return position;
}

bool touches_word(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0) {
    std::size_t before = previous_start(text, begin);
    if (is_word_character(next_code_point(text, before))) return true;
  }
  return end < text.size() && is_word_character(next_code_point(text, end));
}

std::size_t extend_left(std::string_view text, std::size_t begin, std::size_t limit) {
  while (begin > limit) {
    const std::size_t before = previous_start(text, begin);
    std::size_t position = before;
    if (!is_white_space(next_code_point(text, position))) break;
    begin = before;
  }
  return std::max(begin, limit);
}

std::size_t extend_right(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    std::size_t next = end;
    if (!is_white_space(next_code_point(text, next))) break;
    end = next;
  }
  return end;
}

}  // namespace

AddedToken AddedToken::from_json(const SortedJson& value, const std::string& where) {
  const JsonFields fields(value, where);
  fields.allow(
      {"id", "content", "special", "single_word", "lstrip", "rstrip", "normalized", "__type"});
  AddedToken token;
  token.content = fields.string("content");
  token.special = fields.boolean("special", false);
  token.single_word = fields.boolean("single_word", false);
  token.lstrip = fields.boolean("lstrip", false);
  token.rstrip = fields.boolean("rstrip", false);
  token.normalized = fields.boolean("normalized", !token.special);
  return token;
}

void TokenMatcher::add(std::string_view content, std::size_t index) {
  std::uint32_t node = 0;
  for (const char c : content) {
    const auto byte = static_cast<unsigned char>(c);
    auto& children = nodes_[node].children;
    const auto child = std::find_if(children.begin(), children.end(),
                                    [&](const auto& entry) { return entry.first == byte; });
    if (child != children.end()) {
      node = child->second;
      continue;
    }
    const auto fresh = static_cast<std::uint32_t>(nodes_.size());
    children.emplace_back(byte, fresh);
    if (node == 0) first_[byte] = fresh;
    nodes_.emplace_back();
    node = fresh;
  }
  if (nodes_[node].index == kNone) nodes_[node].index = index;
}

std::optional<TokenMatcher::Match> TokenMatcher::find(std::string_view text,
                                                      std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    std::uint32_t node = first_[static_cast<unsigned char>(text[begin])];
    if (node == 0) continue;
    std::optional<Match> longest;
    for (std::size_t at = begin + 1;; ++at) {
      if (nodes_[node].index != kNone) longest = Match{begin, at, nodes_[node].index};
      if (at == text.size()) break;
      const auto byte = static_cast<unsigned char>(text[at]);
      const auto& children = nodes_[node].children;
      const auto child = std::find_if(children.begin(), children.end(),
                                      [&](const auto& entry) { return entry.first == byte; });
      if (child == children.end()) break;
      node = child->second;
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

void AddedTokens::add(AddedToken token, const Vocabulary& vocabulary,
                      std::optional<std::int64_t> expected_id, const std::string& where) {
  if (token.content.empty() || token.content.size() > kMaxContentBytes) {
    throw InputError(fmt::format("an added token of {} bytes", token.content.size()),
                     {where, fmt::format("use 1 to {} bytes", kMaxContentBytes)});
  }
  const AddedToken* known = find(token.content);
  const auto in_model = vocabulary.find(token.content);
  token.id = known      ? known->id
             : in_model ? *in_model
                        : std::max(vocabulary.count(), largest_id_ + 1);
  if (token.id > kMaxTokenId) {
    throw InputError("too many added tokens",
                     {where, fmt::format("use ids up to {}", kMaxTokenId)});
  }
  if (expected_id && *expected_id != token.id) {
    throw InputError(
        fmt::format("the added token \"{}\" has the id {}, but the vocabulary makes it {}",
                    token.content, *expected_id, token.id),
        {where,
         "take all files from the same model; added tokens follow the vocabulary's ids "
         "without a gap"});
  }
  if (known) {
    token.special = token.special || known->special;
    tokens_[by_content_.at(token.content)] = std::move(token);
    return;
  }
  if (const AddedToken* other = find(token.id)) {
    throw InputError(fmt::format("the added tokens \"{}\" and \"{}\" have the same id {}",
                                 other->content, token.content, token.id),
                     {where, "give every token its own id"});
  }
  if (!in_model && vocabulary.has(token.id)) {
    throw InputError(fmt::format("the added token \"{}\" gets the id {}, which \"{}\" has already",
                                 token.content, token.id, vocabulary.token(token.id)),
                     {where, "close the gaps in the vocabulary's ids"});
  }
  largest_id_ = std::max(largest_id_, token.id);
  by_content_[token.content] = tokens_.size();
  by_id_[token.id] = tokens_.size();
  tokens_.push_back(std::move(token));
}

void AddedTokens::mark_special(std::string_view content) {
  const auto found = by_content_.find(std::string(content));
  if (found != by_content_.end()) tokens_[found->second].special = true;
}

void AddedTokens::finish(const Normalizer& normalizer, const std::string& where) {
  raw_ = normalized_ = {};
  for (AddedToken& token : tokens_) {
    token.decoded = token.normalized ? normalizer.apply(token.content) : token.content;
  }
  for (AddedToken& token : tokens_) {
    const AddedToken* written = find(token.decoded);
    token.skipped = written != nullptr && written->special;
  }
  // Special tokens first: of contents that are equal after normalization, the first counts.
  for (const bool special : {true, false}) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const AddedToken& token = tokens_[i];
      if (token.special != special) continue;
      if (!token.normalized) {
        raw_.add(token.content, i);
        continue;
      }
      if (token.decoded.empty()) {
        throw InputError(
            fmt::format("normalization leaves nothing of the added token \"{}\"", token.content),
            {where, "set its \"normalized\" to false"});
      }
      normalized_.add(token.decoded, i);
    }
  }
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

void AddedTokens::split(std::string_view text, bool normalized, const Visit& visit) const {
  std::size_t done = 0;
  std::size_t from = 0;
  while (const auto match = matcher(normalized).find(text, from)) {
    const AddedToken& token = tokens_[match->index];
    from = match->end;
    if (token.single_word && touches_word(text, match->begin, match->end)) continue;
    const std::size_t begin = token.lstrip ? extend_left(text, match->begin, done) : match->begin;
    const std::size_t end = token.rstrip ? extend_right(text, match->end) : match->end;
    if (done < begin) visit(text.substr(done, begin - done), nullptr);
    visit(text.substr(begin, end - begin), &token);
    done = end;
  }
  if (done < text.size()) visit(text.substr(done), nullptr);
}

}  // namespace antisd::inline text
