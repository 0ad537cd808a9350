// What a Tokenizer is made of; shared by its loading (tokenizer_load.cpp) and its use
// (tokenizer.cpp).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"

namespace antisd {

// A piece is a token or unknown.
struct WordLevelModel {
  std::string unknown_token;
};

struct Tokenizer::Parts {
  Vocabulary vocabulary;  // of the model, without the added tokens
  std::variant<BpeModel, WordLevelModel> model;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Decoder decoder;
  PostProcessor post_processor;
  AddedTokens added_tokens;
  TokenizerConfig config;
  bool cleans_up_spaces = false;
  TokenId end_id = 0;
  std::uint64_t number = 0;  // tells the tokenizers of this process apart
  std::string where;

  // To call last, when everything above is in place.
  void finish();

  void encode_text(std::string_view text, bool at_start, std::vector<TokenId>& ids) const;
  void encode_piece(std::string_view piece, std::vector<TokenId>& ids) const;
  std::string_view token(TokenId id) const;
};

}  // namespace antisd
