// Scores rows in batches.
#pragma once

#include <functional>

#include "cli/rows.h"
#include "inference/together.h"

namespace antisd::inline cli {

// Scores every row of the stream: {"logp": [..], "entropy": [..]}. `read` turns a row into a
// request; up to options.max_batch_tokens go through the model at once. RunError if a score is not
// finite. With several ranks all call it; rank 0 has the rows.
int score_rows(const RowStreamOptions& rows, const CausalLm& model, const ScoreOptions& options,
               Communicator& ranks, const std::function<ScoreRequest(const Json& row)>& read);

}  // namespace antisd::inline cli
