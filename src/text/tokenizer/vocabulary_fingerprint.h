// Whether two tokenizers give the same ids to the same tokens, so that one model can score what the
// other has sampled.
//
//   const Tokenizer other = Tokenizer::load("models/Qwen3-32B");
//   if (vocabulary_fingerprint(tokenizer) != vocabulary_fingerprint(other))
//     print(first_difference(tokenizer, other).id);
#pragma once

#include <optional>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace antisd::inline text {

// Of all tokens and their ids, added ones included. How text is cut into tokens is not part of it.
std::string vocabulary_fingerprint(const Tokenizer& tokenizer);

struct VocabularyDifference {
  TokenId id = 0;
  std::optional<std::string> first, second;  // the id's token in each; nothing: it has none
};

// The smallest id that differs, of tokenizers that do differ.
VocabularyDifference first_difference(const Tokenizer& first, const Tokenizer& second);

}  // namespace antisd::inline text
