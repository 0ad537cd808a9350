// Tokens in addition to a model's vocabulary (special ones and others): they are cut out of a text
// before the model sees it, leftmost and longest first.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/json.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/vocabulary.h"

namespace antisd::inline text {

struct AddedToken {
  std::string content;
  bool special = false;
  bool single_word = false;  // only if no word character is adjacent
  bool lstrip = false;       // includes white space on its left
  bool rstrip = false;
  bool normalized = true;  // searched in the normalized text, else in the raw text
  TokenId id = -1;
  // Set by AddedTokens::finish(): the text that decoding writes, which is the normalized content,
  // and whether it is skipped with the special tokens.
  std::string decoded = {};
  bool skipped = false;

  // Reads everything except the id.
  static AddedToken from_json(const SortedJson& value, const std::string& where);
};

// A set of byte strings that finds the longest one at a position.
class TokenMatcher {
 public:
  void add(std::string_view content, std::size_t index);  // the first of equal contents is kept
  struct Match {
    std::size_t begin, end, index;
  };
  // The leftmost match from `from` on, the longest of those that start there.
  std::optional<Match> find(std::string_view text, std::size_t from) const;
  bool empty() const { return nodes_.size() == 1; }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  struct Node {
    std::vector<std::pair<unsigned char, std::uint32_t>> children;
    std::size_t index = kNone;
  };
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<std::uint32_t, 256> first_{};  // the root's children, 0: none
};

class AddedTokens {
 public:
  // Adds a token as `tokenizers` does: it gets the id that the model has for its content, or the
  // next free one. Throws InputError if that is not `expected_id`.
  void add(AddedToken token, const Vocabulary& vocabulary, std::optional<std::int64_t> expected_id,
           const std::string& where);
  void mark_special(std::string_view content);
  void finish(const Normalizer& normalizer, const std::string& where);

  const AddedToken* find(std::string_view content) const;
  const AddedToken* find(TokenId id) const;
  const std::vector<AddedToken>& tokens() const { return tokens_; }

  // Cuts `text` at the tokens that are searched in normalized or in raw text. Calls visit(piece,
  // token): a piece of text without a token, or the text of a token.
  using Visit = std::function<void(std::string_view, const AddedToken*)>;
  void split(std::string_view text, bool normalized, const Visit& visit) const;
  bool looks_for(bool normalized) const { return !matcher(normalized).empty(); }

 private:
  const TokenMatcher& matcher(bool normalized) const { return normalized ? normalized_ : raw_; }

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::string, std::size_t> by_content_;
  std::unordered_map<TokenId, std::size_t> by_id_;
  TokenId largest_id_ = -1;
  TokenMatcher raw_, normalized_;
};

}  // namespace antisd::inline text
