// The post-processor of a tokenizer file, for one sequence: ids to put before and after it.
#pragma once

#include <string>
#include <vector>

#include "io/json.h"
#include "text/tokenizer/vocabulary.h"

namespace antisd::inline text {

struct PostProcessor {
  std::vector<TokenId> before, behind;

  static PostProcessor from_json(const SortedJson& value, const std::string& where);
};

}  // namespace antisd::inline text
