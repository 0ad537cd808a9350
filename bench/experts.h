#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

int run_experts(const std::vector<std::string>& arguments);

}  // namespace antisd::bench
