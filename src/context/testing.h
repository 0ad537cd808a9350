// For tests of contexts: a tokenizer whose words are w0 ... w9999, so that tokens are easy to
// count, and responses with given verdicts.
#pragma once

#include <string>

#include <fmt/format.h>

#include "algo/response.h"
#include "context/prompt_renderer.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::testing {

inline Tokenizer word_tokenizer() {
  std::string vocabulary = R"("[UNK]":0,"[...]":1)";
  for (int i = 0; i < 10'000; ++i)
    vocabulary += fmt::format(R"(,"w{}":{})", i, i + 2);
  for (const char* word : {"Numbers", "target", "Previous", "attempt", "Assessment", "correct",
                           "incorrect", "Solve", "|", "Let", "holds", "So", "boxed"})
    vocabulary += fmt::format(R"(,"{}":{})", word, 10'000 + vocabulary.size());
  return Tokenizer::from_json(fmt::format(R"({{"version":"1.0","added_tokens":[],"normalizer":null,
        "pre_tokenizer":{{"type":"Whitespace"}},"post_processor":null,"decoder":null,
        "model":{{"type":"WordLevel","vocab":{{{}}},"unk_token":"[UNK]"}}}})",
                                          vocabulary),
                              "words");
}

inline std::string words(int first, int last) {
  std::string text;
  for (int i = first; i < last; ++i)
    text += fmt::format("{}w{}", text.empty() ? "" : " ", i);
  return text;
}

inline Response response_with(const std::string& text, std::optional<double> reward) {
  Response response;
  response.text = text;
  response.verdict.reward = reward;
  return response;
}

}  // namespace antisd::testing
