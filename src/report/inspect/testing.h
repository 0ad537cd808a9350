// For tests of inspect: a tokenizer of a few words and inspections with random numbers.
#pragma once

#include <random>
#include <string>

#include <fmt/format.h>

#include "report/inspect/inspection.h"

namespace antisd::testing {

inline Tokenizer few_words() {
  return Tokenizer::from_json(
      R"({"version":"1.0","added_tokens":[{"id":0,"content":"[END]","single_word":false,"lstrip":false,
      "rstrip":false,"normalized":false,"special":true}],"normalizer":null,
      "pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":null,"decoder":null,
      "model":{"type":"WordLevel","vocab":{"[END]":0,"Wait":1,"so":2,"7":3,"apple":4,
      "<script>alert(1)</script>":5,"is":6,"maybe":7},"unk_token":"apple"}})",
      "few words");
}

inline Method method_named(const std::string& name) {
  MethodConfig config;
  config.name = name;
  return resolve_method(config, {});
}

// A response of `size` tokens to problem `problem`.
inline Inspection random_inspection(std::mt19937& random, const std::string& problem,
                                    std::size_t size, const Method& method) {
  std::exponential_distribution<float> logp(1);
  std::uniform_int_distribution<TokenId> id(0, 7);
  Inspection inspection;
  inspection.id = problem;
  for (std::size_t i = 0; i < size; ++i) {
    inspection.response.ids.push_back(id(random));
    inspection.response.student.logp.push_back(-logp(random));
    inspection.response.teacher.logp.push_back(-3 * logp(random));
    inspection.response.student.entropy.push_back(logp(random));
    inspection.response.teacher.entropy.push_back(logp(random));
  }
  inspection.response.verdict.reward = random() % 2;
  inspection.response.group_advantage = static_cast<double>(random() % 3) - 1;
  inspection.response.lambda = 0.5;
  inspection.source = "dataset";
  inspection.prompt_ids = {4};
  inspection.response.context.prompt_ids = {4, 3, 5};
  describe(inspection, few_words());
  weigh(inspection, method);
  return inspection;
}

}  // namespace antisd::testing
