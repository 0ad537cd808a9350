// The page that compares runs: one self-contained file, or the same page live.
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

// Requests /api/update and /api/samples from its server.
std::string live_html(const std::string& title, const std::string& nonce);

// The responses in the report, {STEP: {ID: {"rows", "whole"}}}: a few steps and prompts that most
// runs have in common, limited in size.
Json choose_samples(const RunSet& runs);

}  // namespace antisd::inline report
