// The CPU halves of token_scores, on raw fp32 rows. Statistics are four floats per row over the
// vocabulary seen so far, with z = logits / temperature:
//   m = max z, sum of e^(z - m), sum of (z - m) e^(z - m), z of the target
#pragma once

#include <cstdint>

namespace antisd::inline ops {

// logits: [rows, columns], dense; the columns are vocabulary entries from first_column on.
void cpu_fold_logits(const float* logits, std::int64_t rows, std::int64_t columns,
                     std::int64_t first_column, const std::int32_t* targets,
                     float inverse_temperature, bool first, float* statistics);

void cpu_finish_scores(const float* statistics, std::int64_t rows, float* logp, float* entropy,
                       float* lse);

// dz = (dlogp (1_target - p) - dentropy p (log p + H)) / temperature; dentropy may be null.
void cpu_logit_gradient(const float* logits, std::int64_t rows, std::int64_t columns,
                        std::int64_t first_column, const std::int32_t* targets, const float* lse,
                        const float* entropy, const float* dlogp, const float* dentropy,
                        float inverse_temperature, float* dlogits);

}  // namespace antisd::inline ops
