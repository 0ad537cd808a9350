// The gate's input from a batch, in two steps: each process lists the values of its own responses,
// and the statistic is taken over all of them, since a median of medians is not the median.
//
//   const std::vector<float> values = gate_values(method, teacher, student);
//   gather(values);                                                // from all processes
//   const GateReading g = gate.observe(gate_statistic(method.gate, values));
#pragma once

#include <span>
#include <vector>

#include "algo/method.h"
#include "algo/token_scores.h"

namespace antisd::inline algo {

// Mean of the middle two where the count is even; NaN without values.
double median(std::vector<double> values);

// exp(-mean logp): 1 where every token is certain; NaN without tokens.
double perplexity(std::span<const float> logp);

// What method.gate.signal selects: the entropies of all tokens (the teacher's, or the student's
// without a teacher), the student's log-probabilities, or the teacher's perplexity of each
// response. Rollouts without scores contribute nothing.
std::vector<float> gate_values(const Method& method, std::span<const TokenScores> teacher,
                               std::span<const TokenScores> student);

// S_k, or the two values that auto chooses from; NaN without values.
GateInput gate_statistic(const GateRules& rules, std::span<const float> values);

// Logged whatever signal the gate uses.
struct TeacherSummary {
  double entropy_mean, entropy_median;
  double perplexity;  // over all tokens
};
TeacherSummary summarise_teacher(std::span<const TokenScores> teacher);

}  // namespace antisd::inline algo
