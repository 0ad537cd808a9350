// What a forward pass says about the tokens of one response.
#pragma once

#include <vector>

namespace antisd::inline algo {

struct TokenScores {
  std::vector<float> logp;     // nats, one a response token
  std::vector<float> entropy;  // of the distribution the token was drawn from, nats
};

}  // namespace antisd::inline algo
