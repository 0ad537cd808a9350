#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

// FILE... [--repeats N] [--json]: seconds to read each file into a PromptSet, the best of N.
int run_data(const std::vector<std::string>& arguments);

}  // namespace antisd::bench
