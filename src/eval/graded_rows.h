// Graded responses as rows of an evaluation.
#pragma once

#include <span>
#include <vector>

#include "data/problem.h"
#include "eval/results/sample_row.h"
#include "reward/grading_stage.h"

namespace antisd::inline eval {

// The samples of one problem, whose index in the benchmark is graded.group. RunError for a reward
// that is not finite.
std::vector<SampleRow> graded_rows(const Problem& problem, const GradedGroup& graded,
                                   std::span<const Response> responses);

}  // namespace antisd::inline eval
