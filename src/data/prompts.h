// The prompts of one step: x.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/problem.h"
#include "text/tokenizer/vocabulary.h"

namespace antisd::inline data {

struct Prompt {
  std::string id;                    // of the problem
  std::size_t number = 0;            // of the problem in the data set
  std::uint32_t step = 0;            // that drew it, and
  std::uint32_t index = 0;           // in that step: the key of its random numbers
  const Problem* problem = nullptr;  // borrowed from the data set
  std::vector<TokenId> ids;          // ends with the generation prompt
};

struct PromptBatch {
  std::vector<Prompt> prompts;
};

}  // namespace antisd::inline data
