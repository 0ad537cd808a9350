// antisd-bench grade-code: small programs a second inside the full sandbox.
#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

// [--programs 600] [--workers 0] [--kind asserts|functional|stdio] [--sandbox auto|none] [--json]
int run_grade_code(const std::vector<std::string>& arguments);

}  // namespace antisd::bench
