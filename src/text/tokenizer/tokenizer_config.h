// A model directory's tokenizer settings other than the vocabulary: tokenizer_config.json and the
// older special_tokens_map.json and added_tokens.json.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer/added_tokens.h"

namespace antisd::inline text {

struct TokenizerConfig {
  std::optional<std::string> tokenizer_class;         // without "Fast"
  std::map<std::string, std::string> special_tokens;  // "eos_token" -> "<|im_end|>"
  std::vector<std::string> additional_special_tokens;
  std::vector<AddedToken> added_tokens;  // by id, which is set
  bool add_bos_token = false;
  bool add_eos_token = false;
  bool add_prefix_space = false;
  bool clean_up_spaces = false;
  bool clean_up_spaces_of_bpe = false;
  std::string where;  // the file, for messages

  // A directory without any of the files gives the defaults.
  static TokenizerConfig load(const std::filesystem::path& model_directory);
};

}  // namespace antisd::inline text
