// The responses of a step as an update takes them: which of them make a mini-batch, and the
// sequences they are. In the order of the prompts, whatever finished first, so that timing changes
// nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algo/response.h"
#include "data/prompts.h"
#include "inference/response_pass.h"

namespace antisd::inline trainer {

using ResponseNumbers = std::vector<std::size_t>;

// The responses whose grade did not fail, in `parts` runs of whole groups that differ by one group
// at most. A part may be empty.
std::vector<ResponseNumbers> cut_mini_batches(const ResponseBatch& batch, std::int64_t parts);

// The responses after the student's prompts; neighbours of a group share theirs.
std::vector<TargetSequence> student_sequences(const PromptBatch& prompts,
                                              const ResponseBatch& batch,
                                              std::span<const std::size_t> numbers);
// The same responses after the teacher's.
std::vector<TargetSequence> teacher_sequences(const ResponseBatch& batch,
                                              std::span<const std::size_t> numbers);

}  // namespace antisd::inline trainer
