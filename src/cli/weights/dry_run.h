// `train --dry-run`: everything that training does before its first step, without weights.
#pragma once

#include <iosfwd>

#include <c10/core/Device.h>

#include "cli/weights/training_run.h"
#include "plan/calibration.h"

namespace antisd::inline cli {

// Writes its findings to `out`; it needs only the model's config.json, tokenizer and template
// files. InputError for the first thing that would fail, including too little memory.
void dry_run(const RunConfig& config, const RunOptions& options, Console& console,
             std::ostream& out);

// The GPU's rates; null for a CPU and for a GPU without rates.
const Card* card_at_hand(at::Device device);

}  // namespace antisd::inline cli
