// A report as one HTML file: charts and tables of the summary, and each response as a heatmap of u
// beside the teacher's prompt. The page contains the report (`const report = ...`) and draws the
// heatmap from it.
//
// The report: {"model", "method", "formula", "kinds": [..], "summary", "responses": [..]}, made of
// Analysis::summary() and to_json(Inspection).
#pragma once

#include <cstddef>
#include <string>

#include "io/json.h"

namespace antisd::inline report {

// Tokens of all heatmaps together; a page then has about 6 MB.
inline constexpr std::size_t kHeatmapTokens = 65'536;

// The report with its responses' columns cut to `tokens` in total; a cut response has fewer tokens
// than its token_count.
Json bounded_report(Json report, std::size_t tokens = kHeatmapTokens);

// The page of bounded_report(report).
std::string report_page(const Json& report);

}  // namespace antisd::inline report
