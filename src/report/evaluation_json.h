// What a page shows of eval/step-NNNNNN/summary.json: known fields alone, each a number or absent,
// whatever the file holds.
#pragma once

#include "io/json.h"

namespace antisd::inline report {

// {"benches": {NAME: {"avg", "avg_interval", "pass", "pass_interval", "n", ...}}, "average",
// "average_interval"}. InputError where the file is not a summary.
Json evaluation_json(const Json& summary);

}  // namespace antisd::inline report
