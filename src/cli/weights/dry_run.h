// `train --dry-run`: everything that training would do before its first step, without weights.
#pragma once

#include <iosfwd>

#include "cli/weights/training_run.h"

namespace antisd::inline cli {

// Writes what it finds to `out`; config.json, tokenizer and template files of the model are enough.
// InputError for the first thing that would fail, memory that does not suffice among them.
void dry_run(const RunConfig& config, const RunOptions& options, Console& console,
             std::ostream& out);

}  // namespace antisd::inline cli
