// From a step's rewards and teacher scores to each token's loss: lines 1 to 10 of Algorithm 1.
//
//   // Once per step, before the update:
//   const GateReading reading = gate.observe(gate_statistic(method.gate, values));  // g
//   const Shaping shaping = shape(method, group_advantages(batch), teacher, reading, warmup_u);
//   // For each response of a micro-batch, after its forward pass has computed s:
//   const TokenLosses losses = token_losses(shaping, r, {.logp = s}, mean_tokens);
//   backward(losses.gradient);
//
// The advantage is a constant weight: nothing here differentiates through u.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "algo/advantages.h"
#include "algo/gate.h"
#include "algo/method.h"
#include "algo/moments.h"
#include "algo/token_scores.h"

namespace antisd {

// The part of a step's advantages that is known before the student is scored.
struct Shaping {
  Method method;
  Advantages advantages;             // A_i, by rollout number
  std::vector<TokenScores> teacher;  // t, H_T, by rollout number; empty without a teacher
  std::vector<double> lambda;        // by rollout number
  double outlier_limit = std::numeric_limits<double>::infinity();  // |u| beyond it is noise
};

// `warmup_u` is the spread of u over the steps whose gate was warming up (UpdateTotals::u added
// up); only the released code's rules read it.
Shaping shape(const Method& method, Advantages advantages, std::vector<TokenScores> teacher,
              const GateReading& gate, const Moments& warmup_u = {});

// lambda of one response: g lambda_max, or, by its perplexity,
// g clamp(slope ln(clamp(ppl / tau, 0.5, 3)), 0, lambda_max), 0 where ppl > max_perplexity.
double response_lambda(const Method& method, const GateReading& gate, double teacher_perplexity);

// One response, token by token.
struct TokenAdvantages {
  std::vector<double> u;          // t - s; empty where the method has no term
  std::vector<double> phi;        // of u; u itself where the shape is KL
  std::vector<double> advantage;  // A_{i,t}
  double group_advantage = 0;     // A_i
  double lambda = 0;
};

TokenAdvantages token_advantages(const Shaping& shaping, std::size_t rollout,
                                 std::span<const float> student_logp);

// The student's log-probabilities of one response.
struct StudentTokens {
  std::span<const float> logp;            // of the update's own forward pass
  std::span<const float> old_logp = {};   // before the step's first update; none: the ratio is 1
  std::span<const float> reference = {};  // of the frozen reference; needed where kl_coef > 0
};

struct TokenLosses {
  TokenAdvantages advantages;
  std::vector<double> loss;                    // each token's own, before the mean
  std::vector<double> gradient;                // d (mean loss of the global batch) / d logp
  std::int64_t clipped = 0, dual_clipped = 0;  // tokens
  double log_ratio = 0;                        // sum of new - old
  double kl = 0;                               // sum of the k3 estimates
};

// `mean_tokens`: response tokens that the mean is over, on all micro-batches and processes.
// The rollout must have an advantage: one whose grade failed takes no part.
TokenLosses token_losses(const Shaping& shaping, std::size_t rollout, const StudentTokens& student,
                         std::int64_t mean_tokens);

}  // namespace antisd
