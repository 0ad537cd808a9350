// The teacher's prompt for a response, with the privileged context c.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "text/tokenizer/vocabulary.h"

namespace antisd::inline algo {

enum class ContextSource {
  kPeer,      // a correct rollout of the same group
  kDataset,   // the data set's solution
  kAnswer,    // only the data set's answer
  kFeedback,  // no solution, only the verdict on the response
  kNone,      // no teacher prompt: the grade failed, or the method has no teacher
  // Controls (context.control):
  kOther,   // a solution of another problem
  kWrong,   // an incorrect rollout of the same group
  kPrompt,  // the student's own prompt
  // Chosen by the configuration:
  kColumn,   // a column of the data set (context.column)
  kCommand,  // what a program said (context.command)
};
inline constexpr std::size_t kContextSources = 10;

// "peer", "dataset", "answer", "feedback", "none", "other", "wrong", "prompt", "column",
// "command": the names in rollout rows and metrics.
const char* context_source_name(ContextSource source);

struct Context {
  ContextSource source = ContextSource::kNone;
  std::vector<TokenId> prompt_ids;  // ends with the generation prompt; the response ids follow
};

}  // namespace antisd::inline algo
