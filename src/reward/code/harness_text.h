// The python side of code grading (harness_*.py, concatenated), embedded at build time.
#pragma once

#include <string_view>

namespace antisd::inline reward {

std::string_view harness_text();

}  // namespace antisd::inline reward
