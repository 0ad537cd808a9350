#include "algo/contexts.h"

namespace antisd::inline algo {

const char* context_source_name(ContextSource source) {
  static constexpr std::array<const char*, kContextSources> names = {
      "peer",  "dataset", "answer", "feedback", "none",
      "other", "wrong",   "prompt", "column",   "command"};
  return names[static_cast<std::size_t>(source)];
}

}  // namespace antisd::inline algo
