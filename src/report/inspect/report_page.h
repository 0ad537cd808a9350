// A report as one HTML file: charts and tables of the summary, each response as a heatmap of u
// beside the teacher's prompt. The report itself lies in the page (`const report = ...`) and the
// heatmap is drawn from it.
//
// The report: {"model", "method", "formula", "kinds": [..], "summary", "responses": [..]}, made of
// Analysis::summary() and to_json(Inspection).
#pragma once

#include <cstddef>
#include <string>

#include "io/json.h"

namespace antisd::inline report {

// Tokens of all heatmaps together; with them a page has about 6 MB.
inline constexpr std::size_t kHeatmapTokens = 65'536;

// The report with the columns of its responses cut so that `tokens` are left in all; a response
// that was cut says so by having fewer than its token_count.
Json bounded_report(Json report, std::size_t tokens = kHeatmapTokens);

// Of bounded_report(report).
std::string report_page(const Json& report);

}  // namespace antisd::inline report
