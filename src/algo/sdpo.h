// SDPO's loss of one token: the generalised Jensen-Shannon divergence between student and teacher
// on the student's likeliest tokens, with everything else as one bucket.
#pragma once

#include <span>
#include <vector>

namespace antisd::inline algo {

struct SdpoLoss {
  double loss = 0;
  std::vector<double> gradient;  // d loss / d student log-probability of each of the k tokens
};

// `student_logp` and `teacher_logp` are log-probabilities, under the whole vocabulary, of the same
// k tokens: the student's likeliest. P and Q are the two distributions on k + 1 buckets, the last
// of which holds the rest of the vocabulary:
//   M = (1 - alpha) P + alpha Q
//   loss = alpha KL(Q, M) + (1 - alpha) KL(P, M)     0 < alpha < 1
// The gradient goes through P alone, its last bucket (1 - the sum of the k) included. A log-softmax
// turns it into the whole gradient with respect to the logits.
SdpoLoss sdpo_loss(std::span<const double> student_logp, std::span<const double> teacher_logp,
                   double alpha);

}  // namespace antisd::inline algo
