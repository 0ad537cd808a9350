// A report as text for a terminal: tables, or the response coloured by u.
#pragma once

#include <string>

#include "io/json.h"

namespace antisd::inline report {

// A response of a report: its heading, then a table of all its tokens or, coloured, its text: blue
// where the teacher finds the token less likely (u < 0), red where more likely. `kinds` are the
// report's.
std::string response_text(const Json& response, const Json& kinds, bool coloured);

// The tables of a summary.
std::string summary_text(const Json& summary);

}  // namespace antisd::inline report
