#include "trainer/pretrain/new_model.h"

#include "core/error.h"
#include "data/countdown_tokenizer.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "model/model_shape.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kVocabularyMultiple = 64;  // for tensor cores

constexpr const char* kTokenizerFiles[] = {
    "tokenizer.json",    "tokenizer_config.json",   "vocab.json",          "merges.txt",
    "added_tokens.json", "special_tokens_map.json", "chat_template.jinja", "chat_template.json"};

void write_tokenizer(const fs::path& from, const fs::path& directory) {
  if (from.empty()) {
    for (const auto& [name, text] : countdown_tokenizer_files())
      write_file_atomically(directory / name, text);
    return;
  }
  Tokenizer::load(from);  // reports errors under the file's own name
  for (const char* name : kTokenizerFiles) {
    if (fs::exists(from / name)) write_file_atomically(directory / name, read_file(from / name));
  }
}

std::int64_t rows_for(const NewModelConfig& shape, std::int64_t tokens) {
  const std::int64_t rounded =
      (tokens + kVocabularyMultiple - 1) / kVocabularyMultiple * kVocabularyMultiple;
  if (shape.vocabulary == 0) return rounded;
  if (shape.vocabulary >= tokens) return shape.vocabulary;
  throw InputError(
      fmt::format("{} rows are too few for the tokenizer's {} tokens", shape.vocabulary, tokens),
      {.where = "pretrain.new_model.vocabulary", .remedy = "use 0, or more"});
}

}  // namespace

void write_new_model(const NewModelConfig& shape, const fs::path& tokenizer_from,
                     const fs::path& directory) {
  std::error_code ignored;
  fs::create_directories(directory, ignored);
  write_tokenizer(tokenizer_from, directory);
  const Tokenizer tokenizer = Tokenizer::load(directory);
  const std::int64_t kv_heads = shape.kv_heads == 0 ? shape.heads : shape.kv_heads;
  if (shape.heads % kv_heads != 0) {
    throw InputError(
        fmt::format("{} heads cannot share {} of keys and values", shape.heads, kv_heads),
        {.where = "pretrain.new_model.kv_heads", .remedy = "give a divisor"});
  }
  Json config = {{"architectures", {"Qwen3ForCausalLM"}},
                 {"model_type", "qwen3"},
                 {"hidden_size", shape.hidden},
                 {"intermediate_size", shape.intermediate},
                 {"num_hidden_layers", shape.layers},
                 {"num_attention_heads", shape.heads},
                 {"num_key_value_heads", kv_heads},
                 {"head_dim", shape.head_dim},
                 {"vocab_size", rows_for(shape, tokenizer.vocabulary_size())},
                 {"max_position_embeddings", shape.positions},
                 {"rms_norm_eps", 1e-6},
                 {"rope_theta", shape.rope_theta},
                 {"hidden_act", "silu"},
                 {"attention_bias", false},
                 {"attention_dropout", 0.0},
                 {"initializer_range", 0.02},
                 {"use_cache", true},
                 {"tie_word_embeddings", shape.tied_head},
                 {"torch_dtype", "float32"}};
  Json generation = {{"do_sample", true}, {"temperature", 1.0}, {"top_p", 1.0}, {"top_k", 0}};
  if (const std::optional<TokenId> end = tokenizer.special_token_id("eos_token")) {
    for (Json* file : {&config, &generation}) {
      (*file)["eos_token_id"] = *end;
      (*file)["pad_token_id"] = *end;
    }
  }
  const fs::path file = directory / "config.json";
  parse_model_shape(config, file.string());
  write_file_atomically(file, config.dump(1) + "\n");
  write_file_atomically(directory / "generation_config.json", generation.dump(1) + "\n");
}

}  // namespace antisd::inline trainer
