// Rows of `score` on their way through the model, many in one pass.
#pragma once

#include <functional>

#include "cli/rows.h"
#include "inference/scorer.h"

namespace antisd::inline cli {

// Scores every row of the stream: {"logp": [..], "entropy": [..]}. `read` makes a request of a row;
// up to options.max_batch_tokens go through the model at once. RunError where a score is not
// finite.
int score_rows(const RowStreamOptions& rows, const CausalLm& model, const ScoreOptions& options,
               const std::function<ScoreRequest(const Json& row)>& read);

}  // namespace antisd::inline cli
