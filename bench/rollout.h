#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

// --shape NAME [--device cpu|cuda] [--sequences 256] [--group 1] [--prompt 64] [--new 128]
// [--long-tail] [--json]: sampling with random weights and no end-of-sequence token. Prints tokens
// a second, the share of the floor (weights and the keys and values of all sequences read once a
// step, over the measured bandwidth) and the time by phase.
int run_rollout(const std::vector<std::string>& arguments);

}  // namespace antisd::bench
