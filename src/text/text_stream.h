// The text of a growing response: pieces for a reader, and stop strings.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace antisd::inline text {

// Text without special tokens. A model's vocabulary is often padded: ids without a token are left
// out, as in transformers.
std::string readable_text(const Tokenizer& tokenizer, std::span<const std::int32_t> ids);

// Turns ids into text piece by piece. A piece never ends inside a character: incomplete bytes wait
// for the next id.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::string add(std::int32_t id);  // the text it completes; may be empty
  std::string finish();              // the rest, ill-formed bytes as U+FFFD

 private:
  std::string piece(bool at_end);

  const Tokenizer& tokenizer_;
  std::vector<TokenId> ids_;
  // Decoders treat the first token of a text specially, so a piece is the difference of two texts
  // that start with the same earlier token.
  std::size_t context_ = 0, shown_ = 0;
};

class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> strings);

  bool empty() const { return strings_.empty(); }
  // Whether the newest id completes one of the strings.
  bool complete(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) const;
  // Where the earliest stop string starts.
  std::optional<std::size_t> find(const std::string& text) const;

 private:
  std::vector<std::string> strings_;
  std::size_t longest_ = 0;
};

}  // namespace antisd::inline text
