// The teacher's prompts: the student's prompt, a verified solution and the assessment of the very
// response that follows.
//
//   const ContextBuilder context(config.context, task_of(config.reward, config.data),
//                                config.train.seed, renderer);
//   const ContextBatch contexts = context.build(prompts, batch);                       // c
//   metrics["context/peer_fraction"] = contexts.fraction(ContextSource::kPeer);
//
// The solution is that of a correct other rollout of the group, else the data set's, else its
// answer alone (context.fallback = "dataset"); or, with "feedback", none at all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "algo/contexts.h"
#include "algo/prompts.h"
#include "algo/rollouts.h"
#include "context/peer_picker.h"
#include "context/prompt_renderer.h"
#include "context/templates.h"

namespace antisd {

struct Solution {
  ContextSource source = ContextSource::kFeedback;
  std::string text;  // empty with kFeedback
};

class ContextBuilder {
 public:
  // Borrows the renderer. InputError for templates that cannot be used.
  ContextBuilder(const ContextConfig& config, const std::string& task, std::uint64_t seed,
                 const PromptRenderer& renderer);

  // A rollout whose grade failed gets no context: there is nothing to say of it.
  ContextBatch build(const PromptBatch& prompts, const RolloutBatch& batch) const;

  // What is shown where no peer is.
  Solution fallback(const Problem& problem) const;
  // What a response's text shows to others: the part behind the thinking; empty where there is
  // none.
  std::string solution_of(const Rollout& rollout) const;
  // The student's messages with the context in the last of the user's.
  std::vector<ChatMessage> teacher_messages(const Problem& problem, const Solution& solution,
                                            const RolloutGrade& grade) const;

 private:
  std::vector<Solution> solutions(const PromptBatch& prompts, std::size_t prompt,
                                  const RolloutGroup& group) const;

  ContextConfig config_;
  TaskTemplates templates_;
  PeerPicker picker_;
  const PromptRenderer& renderer_;
};

}  // namespace antisd
