// Text of a response while it grows: pieces for a reader, and stop strings.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace antisd::inline cli {

// Text without special tokens. A model's vocabulary is often padded: ids that no token has are left
// out, as transformers does.
std::string readable_text(const Tokenizer& tokenizer, std::span<const std::int32_t> ids);

// Turns ids into text piece by piece. A piece never ends within a character: bytes of an unfinished
// one wait for the next id.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::string add(std::int32_t id);  // what it makes readable; may be empty
  std::string finish();              // what is left, ill-formed bytes as U+FFFD

 private:
  std::string piece(bool at_end);

  const Tokenizer& tokenizer_;
  std::vector<TokenId> ids_;
  // Decoders treat the first token of a text specially, so that a piece is the difference of two
  // texts that begin with the same earlier token.
  std::size_t context_ = 0, shown_ = 0;
};

class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> strings);

  bool empty() const { return strings_.empty(); }
  // Whether the newest of the ids completes one of the strings.
  bool complete(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) const;
  // Where the earliest one begins.
  std::optional<std::size_t> find(const std::string& text) const;

 private:
  std::vector<std::string> strings_;
  std::size_t longest_ = 0;
};

}  // namespace antisd::inline cli
