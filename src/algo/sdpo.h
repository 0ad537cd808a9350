// SDPO's loss of one token: the generalised Jensen-Shannon divergence between student and teacher
// over the student's most likely tokens, with all other tokens in one bucket.
#pragma once

#include <span>
#include <vector>

namespace antisd::inline algo {

struct SdpoLoss {
  double loss = 0;
  std::vector<double> gradient;  // d loss / d student log-probability of each of the k tokens
};

// `student_logp` and `teacher_logp` are log-probabilities, under the whole vocabulary, of the same
// k tokens, the student's most likely. P and Q are the two distributions over k + 1 buckets; the
// last bucket holds the rest of the vocabulary:
//   M = (1 - alpha) P + alpha Q
//   loss = alpha KL(Q, M) + (1 - alpha) KL(P, M)     0 < alpha < 1
// The gradient is taken with respect to P only, including its last bucket (1 - the sum of the k). A
// log-softmax turns it into the gradient with respect to the logits.
SdpoLoss sdpo_loss(std::span<const double> student_logp, std::span<const double> teacher_logp,
                   double alpha);

}  // namespace antisd::inline algo
