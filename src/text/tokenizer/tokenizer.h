// Text <-> token ids, identical to Hugging Face's for the tokenizers of the models we train.
//
//   const Tokenizer tokenizer = Tokenizer::load("models/Qwen3-0.6B");
//   const std::vector<TokenId> ids = tokenizer.encode("2 + 2 = <|im_end|>");
//   const std::string text = tokenizer.decode(ids, /*skip_special_tokens=*/true);
//
// A Tokenizer is immutable, cheap to copy, and may be used by many threads at once.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocabulary.h"

namespace antisd::inline text {

class Tokenizer {
 public:
  // A Hugging Face directory: tokenizer.json, else vocab.json + merges.txt with the pre-tokenizer
  // that tokenizer_config.json's tokenizer_class implies. Throws InputError.
  static Tokenizer load(const std::filesystem::path& model_directory);
  // The text of a tokenizer.json by itself.
  static Tokenizer from_json(std::string_view text, const std::string& where);

  // Throws InputError on invalid UTF-8. Added tokens in the text become their ids;
  // `add_special_tokens` adds those that the post-processor puts around a sequence.
  std::vector<TokenId> encode(std::string_view text, bool add_special_tokens = false) const;
  // Throws InputError on an id out of range. Incomplete UTF-8 becomes U+FFFD.
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens = false) const;

  TokenId vocabulary_size() const;  // largest id + 1, including added tokens
  std::optional<TokenId> token_to_id(std::string_view token) const;
  std::string id_to_token(
      TokenId id) const;  // empty for an id without a token; InputError as above
  bool is_special(TokenId id) const;

  // The special tokens of the directory, for chat templates: "eos_token" -> "<|im_end|>".
  const std::map<std::string, std::string>& special_tokens() const;
  const std::vector<std::string>& additional_special_tokens() const;
  // The id of a special token by its name, e.g. "eos_token"; nothing if the directory does not have
  // it. Throws InputError if the token is not in the vocabulary.
  std::optional<TokenId> special_token_id(const std::string& name) const;

 private:
  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  static std::shared_ptr<Parts> parts_from_json(std::string_view text, const std::string& where);
  static std::shared_ptr<Parts> parts_from_vocabulary(const std::filesystem::path& directory);

  void check_id(TokenId id) const;

  std::shared_ptr<const Parts> parts_;
};

}  // namespace antisd::inline text
