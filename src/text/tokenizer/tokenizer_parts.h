// The parts of a Tokenizer; shared by its loading (tokenizer_load.cpp) and its use (tokenizer.cpp).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/token_decoder.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

namespace antisd::inline text {

// A piece is a token or unknown.
struct WordLevelModel {
  std::string unknown_token;
};

struct Tokenizer::Parts {
  Vocabulary vocabulary;  // of the model, without added tokens
  std::variant<BpeModel, WordLevelModel> model;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  TokenDecoder decoder;
  PostProcessor post_processor;
  AddedTokens added_tokens;
  TokenizerConfig config;
  bool cleans_up_spaces = false;
  TokenId end_id = 0;
  std::uint64_t number = 0;  // identifies the tokenizer in this process
  std::string where;

  // Call it last, when everything above is set.
  void finish();

  void encode_text(std::string_view text, bool at_start, std::vector<TokenId>& ids) const;
  void encode_piece(std::string_view piece, std::vector<TokenId>& ids) const;
  std::string_view token(TokenId id) const;
};

}  // namespace antisd::inline text
