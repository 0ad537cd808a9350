// calibration.jsonl, embedded at build time.
#pragma once

#include <string_view>

namespace antisd::inline plan {

std::string_view calibration_text();

}  // namespace antisd::inline plan
