// The input of benchmarks without a model: the responses of a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algo/method.h"
#include "algo/response.h"
#include "config/run_config.h"
#include "context/prompt_renderer.h"
#include "data/prompt_set.h"

namespace antisd::bench {

struct SyntheticSizes {
  int prompts = 32, group = 8;
  std::int64_t mean = 8000, longest = 32'768;  // tokens of a response
};

// A step of AntiSD as it is after sampling and grading. Lengths are quantiles of an exponential
// distribution, cut at the longest. Responses are the data set's solutions, one after the other,
// without thinking, so that all of a correct one may be shown to the teacher; half are correct.
class SyntheticStep {
 public:
  // `model`: a directory with a tokenizer; `data`: a data set with solutions.
  SyntheticStep(const std::string& model, const std::string& data, const SyntheticSizes& sizes);

  RunConfig config;
  Method method;
  PromptRenderer renderer;
  PromptSet problems;
  std::vector<std::size_t> indices;  // of the step's problems
  ResponseBatch batch;
  std::vector<TokenScores> students, teachers;  // by response
  std::int64_t tokens = 0;
};

}  // namespace antisd::bench
