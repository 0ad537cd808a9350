// The prompts of one step: x.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/problem.h"
#include "text/tokenizer/vocabulary.h"

namespace antisd::inline data {

struct Prompt {
  std::string id;                    // of the problem
  std::uint32_t index = 0;           // in the step: the key of its random numbers
  const Problem* problem = nullptr;  // borrowed from the data set
  std::vector<TokenId> ids;          // ends with the generation prompt
};

struct PromptBatch {
  std::uint32_t step = 0;
  std::vector<Prompt> prompts;
};

}  // namespace antisd::inline data
