// A run as JSON for the page's script.
#pragma once

#include <cstdint>
#include <string>

#include "io/json.h"
#include "report/run_reader.h"

namespace antisd::inline report {

// Everything but the rows: name, method, seed, status, warnings, gate events, evaluations, steps of
// dumps.
Json facts_json(const RunReader& run);

// {"width", "from", "last", "written", "columns", "times"} of run_set.h, buckets `from` and later.
// Written as text: a page has half a million of these numbers.
void append_rows_json(std::string& out, const RunReader& run, std::int64_t from);

// The step whose average over the benchmarks is highest, the first of several; -1: no evaluation.
// Step 0, the model before training, counts only where it is all there is.
std::int64_t peak_step(const std::map<std::int64_t, Json>& evaluations);

}  // namespace antisd::inline report
