// The responses of a step as input of the update: which of them form a mini-batch, and their
// sequences. In the order of the prompts, not of completion, so that timing changes nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algo/response.h"
#include "data/prompts.h"
#include "inference/response_pass.h"

namespace antisd::inline trainer {

using ResponseNumbers = std::vector<std::size_t>;

// The graded responses, in `parts` runs of whole groups that differ by at most one group. A part
// may be empty.
std::vector<ResponseNumbers> cut_mini_batches(const ResponseBatch& batch, std::int64_t parts,
                                              bool leave_out_truncated = false);

// The responses after the student's prompts; neighbours of a group share the prompt.
std::vector<TargetSequence> student_sequences(const PromptBatch& prompts,
                                              const ResponseBatch& batch,
                                              std::span<const std::size_t> numbers);
// The same responses after the teacher's prompts.
std::vector<TargetSequence> teacher_sequences(const ResponseBatch& batch,
                                              std::span<const std::size_t> numbers);

}  // namespace antisd::inline trainer
