// A whole training step with random weights, by phase, and what AntiSD adds to GRPO.
#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

int run_step(const std::vector<std::string>& arguments);

}  // namespace antisd::bench
