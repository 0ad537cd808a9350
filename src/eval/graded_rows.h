// Graded responses as the rows that an evaluation writes.
#pragma once

#include <span>
#include <vector>

#include "data/problem.h"
#include "eval/results/sample_row.h"
#include "reward/grading_stage.h"

namespace antisd::inline eval {

// The samples of one problem, whose place in the benchmark is graded.group. RunError for a reward
// that is none.
std::vector<SampleRow> graded_rows(const Problem& problem, const GradedGroup& graded,
                                   std::span<const Response> responses);

}  // namespace antisd::inline eval
