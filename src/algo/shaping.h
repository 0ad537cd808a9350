// From a step's rewards and teacher scores to each token's loss: lines 1 to 10 of Algorithm 1.
//
//   // Once per step, before the update:
//   const GateReading reading = gate.observe(gate_statistic(method.gate, values));  // g
//   set_advantages(batch);                                                          // A
//   const Shaping shaping = make_shaping(method, reading, warmup_u, batch);         // lambda
//   // For each response of a micro-batch, after its forward pass has computed s:
//   const TokenLosses losses = token_losses(shaping, batch[r], {.logp = s}, mean);
//   backward(losses.gradient);
//
// The advantage is a constant weight: nothing here differentiates through u.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "algo/advantages.h"
#include "algo/aggregation.h"
#include "algo/gate.h"
#include "algo/loss_terms.h"
#include "algo/method.h"
#include "algo/moments.h"
#include "algo/named_sums.h"
#include "algo/response.h"
#include "algo/rollout_correction.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline algo {

// What turns a response's A, lambda, t and s into token advantages.
struct Shaping {
  Method method;
  double outlier_limit = std::numeric_limits<double>::infinity();  // a larger |u| counts as noise
  std::set<TokenId> bonus_ids = {};                                // see bonus_ids()
};

// The tokens of a vocabulary that are one of the words, without the spaces around them. InputError
// for a word that no token is.
std::set<TokenId> bonus_ids(const Tokenizer& tokenizer, const std::vector<std::string>& words);

// Sets lambda of every response. `warmup_u` holds the statistics of u over the warm-up steps (the
// sum "u" of their updates); only the released code's rules read it.
Shaping make_shaping(const Method& method, const GateReading& gate, const Moments& warmup_u,
                     ResponseBatch& batch);

// lambda of one response: g lambda_max, or, by its perplexity,
// g clamp(slope ln(clamp(ppl / tau, 0.5, 3)), 0, lambda_max), 0 where ppl > max_perplexity.
double response_lambda(const Method& method, const GateReading& gate, double teacher_perplexity);

// One response, token by token.
struct TokenAdvantages {
  std::vector<double> u;          // t - s; empty where the method has no term
  std::vector<double> phi;        // of u; u itself where the divergence is KL
  std::vector<double> advantage;  // A_{i,t}
  double group_advantage = 0;     // A_i
  double lambda = 0;
};

TokenAdvantages token_advantages(const Shaping& shaping, const Response& response,
                                 std::span<const float> student_logp);

// The student's log-probabilities of one response.
struct StudentTokens {
  std::span<const float> logp;            // from the update's own forward pass
  std::span<const float> old_logp = {};   // before the step's first update; none: the ratio is 1
  std::span<const float> reference = {};  // of the frozen reference; see needs_reference()
  std::span<const float> entropy = {};    // H_S of the update's forward pass, for its bonus
};

struct TokenLosses {
  TokenAdvantages advantages;
  std::vector<double> loss;                    // of each token, as it counts in the mean
  std::vector<double> gradient;                // d (mean loss of the global batch) / d logp
  std::int64_t clipped = 0, dual_clipped = 0;  // tokens
  double log_ratio = 0;                        // sum of new - old
  AddedSums added;                             // of algo/loss_terms.h
  RolloutWeights rollout;                      // of loss.rollout_correction
};

// `mean`: what the mean is over, counted over all micro-batches and processes. The response must
// have an advantage: one whose grade failed is not in the loss. With loss.ratio = "sequence" each
// token's gradient is that of GSPO's token form, so that advantages may differ by token; where they
// do not, it is the derivative of the loss. With loss.rollout_correction = "mask" the mean is over
// kept_over().
TokenLosses token_losses(const Shaping& shaping, const Response& response,
                         const StudentTokens& student, MeanOver mean);

// Adds one response to the sums of an update: "loss" (with what loss_terms() add), "advantage",
// "u", "phi", "entropy" (H_S), "term" and "group_advantage" (|A_{i,t} - A_i| and |A_i|), "clipped",
// "dual_clipped", "log_ratio" and one per loss term, all over tokens. With loss.rollout_correction
// also "rollout_ratio" and "rollout_cut", a share; masked tokens are then not in the sums of the
// loss, its terms and its clipping.
void add_sums(NamedSums& sums, const TokenLosses& losses,
              std::span<const float> student_entropy = {});

}  // namespace antisd::inline algo
