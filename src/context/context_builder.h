// The teacher's prompts: the student's prompt, a verified solution and the assessment of the very
// response that follows.
//
//   const ContextBuilder context(config.context, task_of(config.reward, config.data),
//                                config.train.seed, renderer);
//   context.build(prompts, batch);                              // c: Response::context of each
//
// The solution is that of a correct other rollout of the group, else the data set's, else its
// answer alone (context.fallback = "dataset"); or, with "feedback", none at all.
#pragma once

#include <optional>
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

  // Gives every response its context. One whose grade failed gets none: there is nothing to say of
  // it.
  void build(const PromptBatch& prompts, ResponseBatch& batch) const;

  // What is shown where no peer is.
  Solution fallback(const Problem& problem) const;
  // What a response's text shows to others: the part behind the thinking; empty where there is
  // none.
  std::string solution_of(const Response& response) const;
  // The student's messages with the context in the last of the user's.
  std::vector<ChatMessage> teacher_messages(const Problem& problem, const Solution& solution,
                                            const Verdict& verdict) const;

 private:
  std::vector<Solution> solutions(const PromptBatch& prompts, std::size_t prompt,
                                  const ResponseGroup& group) const;

  ContextConfig config_;
  TaskTemplates templates_;
  PeerPicker picker_;
  const PromptRenderer& renderer_;
};

}  // namespace antisd::inline context
