// The teacher's prompt of a response: what privileged context c it is judged under.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "text/tokenizer/vocabulary.h"

namespace antisd::inline algo {

enum class ContextSource {
  kPeer,      // a correct rollout of the same group
  kDataset,   // the data set's solution
  kAnswer,    // the data set's answer alone
  kFeedback,  // no solution at all, only the assessment of the response
  kNone,      // no teacher prompt: the grade failed, or the method has no teacher
};
inline constexpr std::size_t kContextSources = 5;

// "peer", "dataset", "answer", "feedback", "none": the words of a rollout row and of the metrics.
const char* context_source_name(ContextSource source);

struct Context {
  ContextSource source = ContextSource::kNone;
  std::vector<TokenId> prompt_ids;  // ends with the generation prompt; the response ids follow
};

}  // namespace antisd::inline algo
