// Scoring and sampling with the work dealt out to ranks, which all call with the same requests.
//
//   const std::vector<TokenScores> scores = score_together(ranks, model, requests, options);
//
// Where only rank 0 has requests, it gives them to the others first:
//
//   const std::vector<ScoreRequest> all = given_by_first(ranks, requests);
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "dist/communicator.h"
#include "dist/message.h"
#include "inference/rollout_engine.h"
#include "inference/scorer.h"

namespace antisd::inline inference {

// score() of all requests, on every rank; on a CPU the same bits as on one.
std::vector<TokenScores> score_together(Communicator& ranks, const CausalLm& model,
                                        std::span<const ScoreRequest> requests,
                                        ScoreOptions options);

// What each rank has of the scores, empty ones left out, on every rank. What `own` throws, all
// throw.
std::vector<TokenScores> gather_scores(Communicator& ranks,
                                       const std::function<std::vector<TokenScores>()>& own);

// Every rank generates for a part of the requests. The finished groups of all, by request, on every
// rank; fewer than requests if it was interrupted.
std::vector<SampleGroup> generate_together(Communicator& ranks, RolloutEngine& engine,
                                           const CausalLm& model,
                                           std::span<const RolloutRequest> requests,
                                           const RolloutOptions& options);

std::vector<ScoreRequest> given_by_first(Communicator& ranks,
                                         std::span<const ScoreRequest> requests);
std::vector<RolloutRequest> given_by_first(Communicator& ranks,
                                           std::span<const RolloutRequest> requests);

// Parts of messages.
void write(MessageWriter& writer, const std::vector<TokenScores>& scores);
std::vector<TokenScores> read_scores(MessageReader& reader);
// What the sampler fills, and the text.
void write(MessageWriter& writer, const Response& response);
Response read_response(MessageReader& reader);

}  // namespace antisd::inline inference
