// The decoder of a tokenizer file: token strings -> text.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "io/json.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/regex.h"

namespace antisd::inline text {

class TokenDecoder {
 public:
  TokenDecoder() = default;  // tokens with a space between
  static TokenDecoder byte_level();
  static TokenDecoder from_json(const SortedJson& value, const std::string& where);

  // Whether a token's bytes do not depend on its neighbours: then the text is
  // replace_invalid_utf8() of the concatenated token_bytes().
  bool is_byte_level() const;
  static std::string token_bytes(std::string_view token);

  std::string decode(std::vector<std::string> tokens) const;

 private:
  struct ByteLevel {};
  struct ByteFallback {};
  struct Fuse {};
  struct Replace {
    Regex pattern;
    std::string content;
  };
  struct Strip {
    std::string content;
    std::int64_t start, stop;
  };
  struct WordPiece {
    std::string prefix;
    bool cleanup;
  };
  using Step = std::variant<ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, WordPiece>;
  struct Worker;

  static Step step_from_json(const SortedJson& value, const std::string& where);

  std::optional<std::vector<Step>> steps_;
};

// Removes the spaces that tokenization puts before punctuation and contractions.
std::string clean_up_spaces(std::string text);

}  // namespace antisd::inline text
