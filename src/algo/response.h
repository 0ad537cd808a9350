// One response and everything known about it, from the sampler to the dump.
//
//   for (std::size_t r = 0; r < batch.size(); ++r) use(batch[r]);  // prompt by prompt
//   use(batch.groups[p].responses[i]);                             // batch[p * G + i]
//
// Who fills which field, in the order of a step:
//   ids, sampling_logp, raw_logp, finish   the sampler (inference/rollout_engine.h)
//   policies                               the trainer, with rollout.partial
//   text                                   the caller of inference, which has the tokenizer
//   verdict                                the grading stage (reward/grading_stage.h)
//   shaped_reward                          shape_rewards() (algo/reward_shaping.h), where asked for
//   context                                ContextBuilder (context/context_builder.h)
//   teacher                                the scorer, or SDPO's objective in the update
//   before, reference                      the scorer, for the few methods that need them
//   group_advantage, lambda                set_advantages() and make_shaping() (algo/shaping.h)
//   student, token_advantage,              the update, in its first pass over the response
//   rollout_weight
// Fields that are not filled are empty; so a dump shows how far a stopped step got.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algo/contexts.h"
#include "algo/token_scores.h"
#include "algo/verdict.h"
#include "text/tokenizer/vocabulary.h"

namespace antisd::inline algo {

// kPaused: it has not ended, and a later step goes on with it (rollout.partial).
enum class FinishReason { kStop, kLength, kPaused };

// Consecutive tokens of a response that one policy sampled.
struct PolicySpan {
  std::uint32_t step = 0;  // that sampled them, as in Prompt::step
  std::int64_t tokens = 0;
};

struct Response {
  std::vector<TokenId> ids;          // as sampled, with the stop id; never re-encoded from text
  std::vector<float> sampling_logp;  // under the sampling distribution, one per token
  std::vector<float> raw_logp;       // the model's own: temperature 1, no filter
  FinishReason finish = FinishReason::kStop;
  std::vector<PolicySpan> policies;  // who wrote the tokens, in order; empty: this step's policy
  std::string text;                  // without special tokens
  Verdict verdict;
  std::optional<double> shaped_reward;    // R less the penalties of [reward]; nothing: R itself
  Context context;                        // c, the teacher's prompt
  TokenScores teacher;                    // t, H_T
  TokenScores before;                     // s, H_S before the step's first update
  TokenScores reference;                  // of the frozen reference
  std::optional<double> group_advantage;  // A_i; nothing: the grade failed
  double lambda = 0;
  TokenScores student;                  // s, H_S as used in the advantage
  std::vector<double> token_advantage;  // A_{i,t}
  std::vector<double> rollout_weight;   // of loss.rollout_correction; empty: none

  bool truncated() const { return finish == FinishReason::kLength; }
  bool paused() const { return finish == FinishReason::kPaused; }
};

struct ResponseGroup {
  std::vector<Response> responses;
};

struct ResponseBatch {
  std::vector<ResponseGroup> groups;  // by prompt, all of the same size

  std::size_t group_size() const { return groups.empty() ? 0 : groups.front().responses.size(); }
  std::size_t size() const { return groups.size() * group_size(); }
  const Response& operator[](std::size_t r) const {
    return groups[r / group_size()].responses[r % group_size()];
  }
  Response& operator[](std::size_t r) {
    return groups[r / group_size()].responses[r % group_size()];
  }
};

// Fails if the groups differ in size or a response lacks a log-probability for a token.
void check_responses(const ResponseBatch& batch);

// One field of every response, by its number, for formulas over a whole batch.
std::vector<TokenScores> scores_of(const ResponseBatch& batch, TokenScores Response::*field);

}  // namespace antisd::inline algo
