#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "core/error.h"
#include "text/tokenizer/json_fields.h"
#include "text/tokenizer/tokenizer_file.h"
#include "text/tokenizer/tokenizer_parts.h"

namespace antisd::inline text {
namespace {

BpeModel bpe_from_json(const JsonFields& fields, const Vocabulary& vocabulary,
                       const MergeList& merges) {
  fields.allow({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                "fuse_unk", "byte_fallback", "ignore_merges"});
  if (fields.has("dropout") && fields.get("dropout") != 0.0) {
    fields.fail("dropout makes ids random and is not supported", "set it to null");
  }
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!fields.string(affix, "").empty()) {
      fields.fail(fmt::format("\"{}\" is not supported", affix), "use a byte-level BPE tokenizer");
    }
  }
  BpeOptions options;
  options.unknown_token = fields.optional_string("unk_token");
  options.fuse_unknown = fields.boolean("fuse_unk", false);
  options.byte_fallback = fields.boolean("byte_fallback", false);
  options.ignore_merges = fields.boolean("ignore_merges", false);
  return BpeModel(vocabulary, merges.merges(), std::move(options), fields.where());
}

void add_tokens_of_file(const JsonFields& file, const Vocabulary& vocabulary,
                        AddedTokens& added_tokens) {
  if (!file.has("added_tokens")) return;
  std::size_t index = 0;
  for (const SortedJson& value : file.array("added_tokens")) {
    const std::string where = fmt::format("{}[{}]", file.where("added_tokens"), index++);
    added_tokens.add(AddedToken::from_json(value, where), vocabulary,
                     JsonFields(value, where).integer("id"), where);
  }
}

void add_tokens_of_config(const TokenizerConfig& config, const Vocabulary& vocabulary,
                          AddedTokens& added_tokens) {
  for (const AddedToken& token : config.added_tokens) {
    if (added_tokens.find(token.content) != nullptr) continue;  // tokenizer.json has more details
    added_tokens.add(token, vocabulary, token.id, config.where);
  }
}

std::vector<std::string> special_contents(const TokenizerConfig& config) {
  std::vector<std::string> contents;
  // in transformers' order, which determines the ids of new tokens
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    const auto found = config.special_tokens.find(name);
    if (found != config.special_tokens.end()) contents.push_back(found->second);
  }
  for (const auto& [name, content] : config.special_tokens)
    contents.push_back(content);
  contents.insert(contents.end(), config.additional_special_tokens.begin(),
                  config.additional_special_tokens.end());
  return contents;
}

}  // namespace

void Tokenizer::Parts::finish() {
  static std::atomic<std::uint64_t> count = 0;
  number = ++count;
  added_tokens.finish(normalizer, where);
  end_id = vocabulary.end_id();
  for (const AddedToken& token : added_tokens.tokens())
    end_id = std::max(end_id, token.id + 1);
  for (const auto* ids : {&post_processor.before, &post_processor.behind}) {
    for (const TokenId id : *ids) {
      if (id >= end_id) {
        throw InputError(fmt::format("the post-processor adds the id {}", id),
                         {where, fmt::format("ids go from 0 to {}", end_id - 1)});
      }
    }
  }
  // Clean-up is for WordPiece and damages BPE text, so BPE needs a second key.
  cleans_up_spaces = config.clean_up_spaces &&
                     (!std::holds_alternative<BpeModel>(model) || config.clean_up_spaces_of_bpe);
}

std::shared_ptr<Tokenizer::Parts> Tokenizer::parts_from_json(std::string_view text,
                                                             const std::string& where) {
  TokenizerFile file = parse_tokenizer_json(text, where);
  const JsonFields fields(file.rest, where);
  fields.allow({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                "post_processor", "decoder", "model"});
  auto parts = std::make_shared<Parts>();
  parts->where = where;
  parts->vocabulary = std::move(file.vocabulary);
  const JsonFields model(fields.get("model"), fields.where("model"));
  const std::string type = model.string("type", file.has_merges ? "BPE" : "");
  if (type == "BPE") {
    parts->model = bpe_from_json(model, parts->vocabulary, file.merges);
  } else if (type == "WordLevel") {
    model.allow({"type", "unk_token"});
    parts->model = WordLevelModel{model.string("unk_token")};
  } else {
    model.fail(fmt::format("the model {} is not supported", type.empty() ? "(no type)" : type),
               "known are BPE and WordLevel");
  }
  parts->normalizer = Normalizer::from_json(fields.get("normalizer"), fields.where("normalizer"));
  parts->pre_tokenizer =
      PreTokenizer::from_json(fields.get("pre_tokenizer"), fields.where("pre_tokenizer"));
  parts->decoder = TokenDecoder::from_json(fields.get("decoder"), fields.where("decoder"));
  parts->post_processor =
      PostProcessor::from_json(fields.get("post_processor"), fields.where("post_processor"));
  add_tokens_of_file(fields, parts->vocabulary, parts->added_tokens);
  return parts;
}

std::shared_ptr<Tokenizer::Parts> Tokenizer::parts_from_vocabulary(
    const std::filesystem::path& directory) {
  auto parts = std::make_shared<Parts>();
  parts->where = (directory / "vocab.json").string();
  parts->config = TokenizerConfig::load(directory);
  const TokenizerConfig& config = parts->config;
  if (config.tokenizer_class == "Qwen2Tokenizer") {
    parts->normalizer = Normalizer::nfc();
    parts->pre_tokenizer = PreTokenizer::qwen2(config.add_prefix_space);
  } else if (config.tokenizer_class == "GPT2Tokenizer") {
    parts->pre_tokenizer = PreTokenizer::gpt2(config.add_prefix_space);
  } else {
    throw InputError(config.tokenizer_class
                         ? fmt::format("tokenizer_class {} is not known without a tokenizer.json",
                                       *config.tokenizer_class)
                         : "there is no tokenizer.json, and no tokenizer_class says how to use "
                           "vocab.json and merges.txt",
                     {config.where,
                      "known are Qwen2Tokenizer, Qwen2TokenizerFast, GPT2Tokenizer and "
                      "GPT2TokenizerFast"});
  }
  parts->decoder = TokenDecoder::byte_level();
  parts->vocabulary = parse_vocabulary_json(read_text_file(directory / "vocab.json"), parts->where);
  const auto merges_path = directory / "merges.txt";
  const MergeList merges = parse_merges_text(read_text_file(merges_path), merges_path.string());
  parts->model = BpeModel(parts->vocabulary, merges.merges(), {}, merges_path.string());

  // These files have no other place for special tokens, so a new one gets the next id.
  add_tokens_of_config(config, parts->vocabulary, parts->added_tokens);
  for (const std::string& content : special_contents(config)) {
    if (parts->added_tokens.find(content) != nullptr) continue;
    parts->added_tokens.add({.content = content, .special = true, .normalized = false},
                            parts->vocabulary, std::nullopt, config.where);
  }
  const auto id_of = [&](const char* name) {
    return parts->added_tokens.find(config.special_tokens.at(name))->id;
  };
  if (config.add_bos_token && config.special_tokens.contains("bos_token")) {
    parts->post_processor.before = {id_of("bos_token")};
  }
  if (config.add_eos_token && config.special_tokens.contains("eos_token")) {
    parts->post_processor.behind = {id_of("eos_token")};
  }
  return parts;
}

Tokenizer Tokenizer::from_json(std::string_view text, const std::string& where) {
  const std::shared_ptr<Parts> parts = parts_from_json(text, where);
  parts->finish();
  return Tokenizer(parts);
}

Tokenizer Tokenizer::load(const std::filesystem::path& model_directory) {
  const auto file = model_directory / "tokenizer.json";
  std::shared_ptr<Parts> parts;
  if (std::filesystem::exists(file)) {
    parts = parts_from_json(read_text_file(file), file.string());
    parts->config = TokenizerConfig::load(model_directory);
    add_tokens_of_config(parts->config, parts->vocabulary, parts->added_tokens);
  } else if (std::filesystem::exists(model_directory / "vocab.json")) {
    parts = parts_from_vocabulary(model_directory);
  } else {
    throw InputError("there is neither tokenizer.json nor vocab.json",
                     {model_directory.string(), "give a Hugging Face model directory"});
  }
  for (const std::string& content : special_contents(parts->config)) {
    parts->added_tokens.mark_special(content);
  }
  parts->finish();
  return Tokenizer(parts);
}

}  // namespace antisd::inline text
