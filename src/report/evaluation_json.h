// The part of eval/step-NNNNNN/summary.json that a page shows: only known fields, each a number or
// absent, whatever the file contains.
#pragma once

#include "io/json.h"

namespace antisd::inline report {

// {"benches": {NAME: {"avg", "avg_interval", "pass", "pass_interval", "n", ...}}, "average",
// "average_interval"}. InputError if the file is not a summary.
Json evaluation_json(const Json& summary);

}  // namespace antisd::inline report
