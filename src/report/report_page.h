// The page that compares runs: one file with everything in it, or the same page live.
//
//   RunSet runs;
//   runs.add("grpo", Folder("runs/grpo"));
//   while (runs.refresh(64 << 20)) {}
//   write_file_atomically("report.html", report_html(runs, "My runs"));
#pragma once

#include <string>

#include "io/json.h"
#include "report/run_set.h"

namespace antisd::inline report {

std::string report_html(const RunSet& runs, const std::string& title);

// Asks /api/update and /api/samples of the server it came from.
std::string live_html(const std::string& title, const std::string& nonce);

// Responses that the report carries, {STEP: {ID: {"rows", "whole"}}}: a few steps and prompts that
// most runs have in common, bounded in size.
Json choose_samples(const RunSet& runs);

}  // namespace antisd::inline report
