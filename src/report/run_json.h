// A run as JSON for the page's script.
#pragma once

#include <cstdint>
#include <string>

#include "io/json.h"
#include "report/run_reader.h"

namespace antisd::inline report {

// Everything except the rows: name, method, seed, status, warnings, gate events, evaluations, steps
// of dumps.
Json facts_json(const RunReader& run);

// {"width", "from", "last", "written", "columns", "times"} of run_set.h, from bucket `from` on.
// Written as text: a page has half a million of these numbers.
void append_rows_json(std::string& out, const RunReader& run, std::int64_t from);

// The step with the highest average over the benchmarks, the first of several; -1: no evaluation.
// Step 0, the model before training, counts only if there is no other.
std::int64_t peak_step(const std::map<std::int64_t, Json>& evaluations);

}  // namespace antisd::inline report
