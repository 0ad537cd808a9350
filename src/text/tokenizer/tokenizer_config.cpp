#include "text/tokenizer/tokenizer_config.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/error.h"
#include "text/tokenizer/json_fields.h"
#include "text/tokenizer/tokenizer_file.h"

namespace antisd::inline text {
namespace {

constexpr std::array<std::string_view, 7> kSpecialNames = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

// A special token is a string or an object with its "content".
std::string content_of(const SortedJson& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  return AddedToken::from_json(value, where).content;
}

void read_special_tokens(const JsonFields& fields, const SortedJson& value,
                         TokenizerConfig& config) {
  for (const auto& item : value.items()) {
    const std::string& key = item.key();
    const bool is_standard =
        std::find(kSpecialNames.begin(), kSpecialNames.end(), key) != kSpecialNames.end();
    if (is_standard && item.value().is_null()) {
      config.special_tokens.erase(key);
    } else if (is_standard || (key.ends_with("_token") && item.value().is_string())) {
      config.special_tokens[key] = content_of(item.value(), fields.where(key));
    }
  }
  const char* extra =
      fields.has("extra_special_tokens") && !fields.get("extra_special_tokens").empty()
          ? "extra_special_tokens"
          : "additional_special_tokens";
  if (!fields.has(extra)) return;
  if (fields.get(extra).is_object()) {
    for (const auto& item : fields.get(extra).items()) {
      config.special_tokens[item.key()] = content_of(item.value(), fields.where(extra));
    }
    return;
  }
  config.additional_special_tokens.clear();
  for (const SortedJson& token : fields.array(extra)) {
    config.additional_special_tokens.push_back(content_of(token, fields.where(extra)));
  }
}

TokenId parse_id(const std::string& text, const std::string& where) {
  const bool is_number = !text.empty() && text.size() <= 9 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number) {
    throw InputError(fmt::format("\"{}\" is not an id", text), {where, "use a whole number"});
  }
  return static_cast<TokenId>(std::stol(text));
}

void read_added_tokens_decoder(const JsonFields& fields, TokenizerConfig& config) {
  const std::string where = fields.where("added_tokens_decoder");
  const JsonFields decoder(fields.get("added_tokens_decoder"), where);
  for (const auto& item : fields.get("added_tokens_decoder").items()) {
    AddedToken token = AddedToken::from_json(item.value(), where + "." + item.key());
    token.id = parse_id(item.key(), where);
    config.added_tokens.push_back(std::move(token));
  }
}

// {"token": id}; a special token is not searched in normalized text.
void read_added_tokens_json(const std::filesystem::path& path, TokenizerConfig& config) {
  const SortedJson value = parse_sorted_json(read_text_file(path), path.string());
  const JsonFields fields(value, path.string());
  for (const auto& item : value.items()) {
    AddedToken token{.content = item.key()};
    const std::int64_t id = fields.integer(item.key());
    if (id < 0 || id > kMaxTokenId) {
      fields.fail(fmt::format("the token \"{}\" has the id {}", item.key(), id),
                  fmt::format("ids go from 0 to {}", kMaxTokenId));
    }
    token.id = static_cast<TokenId>(id);
    for (const auto& [name, content] : config.special_tokens) {
      token.special = token.special || content == token.content;
    }
    for (const std::string& content : config.additional_special_tokens) {
      token.special = token.special || content == token.content;
    }
    token.normalized = !token.special;
    config.added_tokens.push_back(std::move(token));
  }
}

void read_main_file(const std::filesystem::path& path, TokenizerConfig& config,
                    bool& has_added_tokens) {
  const SortedJson value = parse_sorted_json(read_text_file(path), path.string());
  const JsonFields fields(value, path.string());
  config.tokenizer_class = fields.optional_string("tokenizer_class");
  if (config.tokenizer_class && config.tokenizer_class->ends_with("Fast")) {
    config.tokenizer_class->resize(config.tokenizer_class->size() - 4);
  }
  const bool is_qwen2 = config.tokenizer_class == "Qwen2Tokenizer";
  if (is_qwen2 || config.tokenizer_class == "GPT2Tokenizer") {
    for (const char* name : {"unk_token", "eos_token", is_qwen2 ? "pad_token" : "bos_token"}) {
      config.special_tokens[name] = "<|endoftext|>";
    }
  }
  read_special_tokens(fields, value, config);
  config.add_bos_token = fields.boolean("add_bos_token", false);
  config.add_eos_token = fields.boolean("add_eos_token", false);
  config.add_prefix_space = fields.boolean("add_prefix_space", false);
  config.clean_up_spaces = fields.boolean("clean_up_tokenization_spaces", false);
  config.clean_up_spaces_of_bpe = fields.boolean(
      "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", false);
  if (fields.boolean("split_special_tokens", false)) {
    fields.fail("split_special_tokens is not supported", "set it to false");
  }
  has_added_tokens = fields.has("added_tokens_decoder");
  if (has_added_tokens) read_added_tokens_decoder(fields, config);
}

}  // namespace

TokenizerConfig TokenizerConfig::load(const std::filesystem::path& model_directory) {
  TokenizerConfig config;
  const auto main_file = model_directory / "tokenizer_config.json";
  config.where = main_file.string();
  bool has_added_tokens = false;
  if (std::filesystem::exists(main_file)) read_main_file(main_file, config, has_added_tokens);
  if (!has_added_tokens) {
    const auto map_file = model_directory / "special_tokens_map.json";
    if (std::filesystem::exists(map_file)) {
      const SortedJson value = parse_sorted_json(read_text_file(map_file), map_file.string());
      read_special_tokens(JsonFields(value, map_file.string()), value, config);
    }
    const auto added_file = model_directory / "added_tokens.json";
    if (std::filesystem::exists(added_file)) read_added_tokens_json(added_file, config);
  }
  std::sort(config.added_tokens.begin(), config.added_tokens.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return config;
}

}  // namespace antisd::inline text
