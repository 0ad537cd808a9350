#include "text/tokenizer/vocabulary_fingerprint.h"

#include <algorithm>

#include <fmt/format.h>

#include "io/checksum.h"

namespace antisd::inline text {
namespace {

std::optional<std::string> token_of(const Tokenizer& tokenizer, TokenId id) {
  if (id >= tokenizer.vocabulary_size()) return std::nullopt;
  std::string token = tokenizer.id_to_token(id);
  return token.empty() ? std::nullopt : std::optional(std::move(token));
}

}  // namespace

std::string vocabulary_fingerprint(const Tokenizer& tokenizer) {
  Checksum sum;
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const std::string token = tokenizer.id_to_token(id);
    if (!token.empty()) sum.add(fmt::format("{} {}:{}\n", id, token.size(), token));
  }
  return sum.hex();
}

VocabularyDifference first_difference(const Tokenizer& first, const Tokenizer& second) {
  const TokenId end = std::max(first.vocabulary_size(), second.vocabulary_size());
  for (TokenId id = 0; id < end; ++id) {
    VocabularyDifference found{id, token_of(first, id), token_of(second, id)};
    if (found.first != found.second) return found;
  }
  return {end, std::nullopt, std::nullopt};
}

}  // namespace antisd::inline text
