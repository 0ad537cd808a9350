// antisd-bench score: time and memory of score() on random weights of a named shape, of
// token_scores alone against its matrix products, and of a shared prefix against the same sequences
// apart.
#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

int run_score(const std::vector<std::string>& arguments);

}  // namespace antisd::bench
