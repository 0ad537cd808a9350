// The divergence between student and teacher at one token, as a loss: forward KL, reverse KL, or
// the generalised Jensen-Shannon divergence, over some tokens with all others in one bucket.
//
//   const SdpoLoss loss = sdpo_loss(student_logp, teacher_logp, /*alpha=*/0.5);
//   const BucketLoss kl = bucket_loss(p, q, {.divergence = TokenDivergence::kForwardKl});
//
// P and Q are the distributions of student and teacher over the buckets:
//   forward KL   KL(Q, P): the student covers what the teacher says
//   reverse KL   KL(P, Q): the student says only what the teacher would
//   JSD          alpha KL(Q, M) + (1 - alpha) KL(P, M), M = (1 - alpha) P + alpha Q, 0 < alpha < 1
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace antisd::inline algo {

enum class TokenDivergence { kForwardKl, kReverseKl, kJsd };
// The tokens that are buckets of their own.
enum class DistilledTokens { kStudentsTop, kTeachersTop, kAll };

struct DivergenceRules {
  TokenDivergence divergence = TokenDivergence::kJsd;
  DistilledTokens tokens = DistilledTokens::kStudentsTop;
  std::int64_t top_k = 100;  // of the student or teacher
  double alpha = 0.5;        // of JSD

  std::string text() const;  // "the reverse KL divergence ... on the teacher's 20 likeliest tokens"
};

struct SdpoLoss {
  double loss = 0;
  std::vector<double> gradient;  // d loss / d student log-probability of each of the k tokens
};

// SDPO's: the JSD where `student_logp` and `teacher_logp` are log-probabilities, under the whole
// vocabulary, of the same k tokens, the student's most likely; the last of the k + 1 buckets holds
// the rest of the vocabulary. The gradient is taken with respect to P only, including its last
// bucket (1 - the sum of the k). A log-softmax turns it into the gradient with respect to the
// logits.
SdpoLoss sdpo_loss(std::span<const double> student_logp, std::span<const double> teacher_logp,
                   double alpha);

struct BucketLoss {
  double loss = 0;
  // d loss / d logit of each bucket, if P is the softmax of one logit per bucket. A token that is a
  // bucket has it as the gradient of its own logit; one of the rest has a part of it: its share of
  // the bucket's probability.
  std::vector<double> by_logit;
};

// `student` and `teacher` are probabilities of the same buckets, of all tokens together. An exact
// rest keeps its gradient exact where the student is nearly certain: 1 - the sum of rounded
// probabilities is then only rounding.
BucketLoss bucket_loss(std::span<const double> student, std::span<const double> teacher,
                       const DivergenceRules& rules);

}  // namespace antisd::inline algo
