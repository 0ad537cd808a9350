// A report as text for a terminal: tables, or the response coloured by u.
#pragma once

#include <string>

#include "io/json.h"

namespace antisd::inline report {

// A response of a report: its head, then a table of all its tokens, or, coloured, its text with
// blue where the teacher would not have written it (u < 0) and red where the solution makes it
// likelier. `kinds` are the report's.
std::string response_text(const Json& response, const Json& kinds, bool coloured);

// The tables of a summary.
std::string summary_text(const Json& summary);

}  // namespace antisd::inline report
