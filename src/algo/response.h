// One response from the sampler to the dump: y, and everything that is known of it.
//
//   for (std::size_t r = 0; r < batch.size(); ++r) use(batch[r]);  // prompt by prompt
//   use(batch.groups[p].responses[i]);                             // batch[p * G + i]
//
// Who fills what, in the order of a step:
//   ids, sampling_logp, raw_logp, finish   the sampler (inference/rollout_engine.h)
//   text                                   whoever has the tokenizer (inference's caller)
//   verdict                                the grading stage (reward/grading_stage.h)
//   context                                ContextBuilder (context/context_builder.h)
//   teacher                                the scorer, or SDPO's objective in the update
//   before, reference                      the scorer, for the few methods that need them
//   group_advantage, lambda                set_advantages() and shape() (algo/shaping.h)
//   student, token_advantage               the update, in its first pass over the response
// A field that nobody filled is empty: that is how a dump knows what a stopped step had got to.
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

enum class FinishReason { kStop, kLength };

struct Response {
  std::vector<TokenId> ids;          // as sampled, the stop id included; never made from the text
  std::vector<float> sampling_logp;  // under the distribution sampled from, one a token
  std::vector<float> raw_logp;       // the model's own: temperature 1, no filter
  FinishReason finish = FinishReason::kStop;
  std::string text;  // without special tokens
  Verdict verdict;
  Context context;                        // c, the teacher's prompt
  TokenScores teacher;                    // t, H_T
  TokenScores before;                     // s, H_S before the step's first update
  TokenScores reference;                  // of the frozen reference
  std::optional<double> group_advantage;  // A_i; nothing: the grade failed
  double lambda = 0;
  TokenScores student;                  // s, H_S as the advantage saw them
  std::vector<double> token_advantage;  // A_{i,t}

  bool truncated() const { return finish == FinishReason::kLength; }
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

// Fails where the groups differ in size or a response has not one log-probability for each token.
void check_responses(const ResponseBatch& batch);

// One field of every response, by number: what formulas over a whole batch take.
std::vector<TokenScores> scores_of(const ResponseBatch& batch, TokenScores Response::*field);

}  // namespace antisd::inline algo
