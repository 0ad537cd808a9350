// `antisd-bench precision`: what bf16 or fp16 on a GPU does to log-probabilities, against fp32 on
// the CPU with the same weights, rounded to bf16 for both.
#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

// --shape NAME [--device cuda|cpu] [--sequences 4] [--length 256] [--entropy 0.9] [--threads N]
// [--seed 0] [--json]. The logits of random weights are too flat to show anything: they are scaled
// until the mean entropy is below --entropy nats. Prints mean and largest |delta logp| and the mean
// entropy. On the CPU, which has no bf16 path, only the last hidden states are rounded to bf16,
// after one thread has computed one sequence at a time: the part of the difference that no bf16
// path escapes.
int run_precision(const std::vector<std::string>& arguments);

}  // namespace antisd::bench
