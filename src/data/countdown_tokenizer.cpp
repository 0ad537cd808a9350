#include "data/countdown_tokenizer.h"

#include "data/countdown.h"
#include "io/json.h"

namespace antisd::inline data {
namespace {

// Trained models depend on this order.
constexpr const char* kWords[] = {
    "[UNK]",    "[EOS]",   "Numbers",    "target",  "|",         "Let",  "+",  "-",
    "*",        "=",       ";",          "no",      "holds",     "Wait", "So", "boxed",
    "Previous", "attempt", "Assessment", "correct", "incorrect", "Solve"};
constexpr int kSpecialWords = 2;

}  // namespace

std::map<std::string, std::string> countdown_tokenizer_files() {
  Json vocabulary = Json::object();
  for (const char* word : kWords)
    vocabulary[word] = vocabulary.size();
  for (int number = 0; number <= kCountdownMaxResult; ++number)
    vocabulary[std::to_string(number)] = vocabulary.size();
  Json added = Json::array();
  for (int id = 0; id < kSpecialWords; ++id)
    added.push_back({{"id", id},
                     {"content", kWords[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const Json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
      {"post_processor", nullptr},
      {"decoder", nullptr},
      {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "[UNK]"}}}};
  const Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                       {"unk_token", "[UNK]"},
                       {"eos_token", "[EOS]"},
                       {"pad_token", "[EOS]"},
                       {"clean_up_tokenization_spaces", false},
                       {"model_max_length", 1024}};
  return {{"tokenizer.json", tokenizer.dump(1) + "\n"},
          {"tokenizer_config.json", config.dump(1) + "\n"},
          {"chat_template.jinja",
           "{% for message in messages %}{% if not loop.first %} {% endif %}"
           "{{ message['content'] }}{% if message['role'] == 'assistant' %} [EOS]{% endif %}"
           "{% endfor %}"}};
}

}  // namespace antisd::inline data
