// The teacher's prompts: the student's prompt, a verified solution, and the verdict on the response
// that follows.
//
//   const ContextBuilder context(config.context, task_of(config.reward, config.data),
//                                config.train.seed, renderer);
//   context.build(prompts, batch);                              // c: Response::context of each
//
// The solution is a correct rollout of the same group (not the response itself), else the data
// set's solution, else only its answer (context.fallback = "dataset"); or, with "feedback", none.
// With context.column it is that column's text instead of a rollout, with context.command what the
// program said.
// context.control replaces one part of that, to find out what the teacher's term acts on.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algo/response.h"
#include "context/peer_picker.h"
#include "context/prompt_renderer.h"
#include "context/templates.h"
#include "data/prompts.h"

namespace antisd::inline context {

struct Solution {
  ContextSource source = ContextSource::kFeedback;
  std::string text;  // empty with kFeedback
};

class ContextBuilder {
 public:
  // Borrows the renderer. InputError for templates that cannot be used.
  ContextBuilder(const ContextConfig& config, const std::string& task, std::uint64_t seed,
                 const PromptRenderer& renderer);

  // Gives every response its context, except those whose grade failed: there is no verdict to show.
  // A solution is cut to context.max_solution_tokens, and further where the teacher's prompt and
  // the response would have more than `positions` tokens together. Returns how many were cut.
  // `told`: what context.command said of each response; empty texts fall back.
  std::int64_t build(const PromptBatch& prompts, ResponseBatch& batch,
                     std::int64_t positions = std::numeric_limits<std::int64_t>::max(),
                     std::span<const std::string> told = {}) const;

  // The solution to show when there is no correct peer.
  Solution fallback(const Problem& problem) const;
  // What every response to the problem is shown by context.column, or else fallback().
  Solution from_row(const Problem& problem) const;
  // The part of a response that may be shown to others: the text after the thinking; empty if there
  // is none.
  std::string solution_of(const Response& response) const;
  // The student's messages with the context in the last user message.
  std::vector<ChatMessage> teacher_messages(const Problem& problem, const Solution& solution,
                                            const Verdict& verdict) const;

 private:
  void cut_to_fit(const Problem& problem, Solution& solution, std::int64_t positions,
                  Response& response) const;
  // What the responses of a group are shown.
  std::vector<Solution> solutions(const PromptBatch& prompts, const ResponseBatch& batch,
                                  std::size_t group, std::span<const std::string> told) const;
  // A peer of `group` that is correct or, for the control, wrong; for each response of `prompt`.
  std::vector<std::optional<std::string>> peers(const PromptBatch& prompts, std::size_t prompt,
                                                const ResponseGroup& group, bool correct) const;
  std::vector<Solution> own_solutions(const PromptBatch& prompts, const ResponseBatch& batch,
                                      std::size_t group, std::span<const std::string> told) const;

  ContextConfig config_;
  TaskTemplates templates_;
  PeerPicker picker_;
  const PromptRenderer& renderer_;
};

}  // namespace antisd::inline context
