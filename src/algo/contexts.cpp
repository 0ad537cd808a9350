#include "algo/contexts.h"

namespace antisd {

const char* context_source_name(ContextSource source) {
  static constexpr std::array<const char*, kContextSources> names = {"peer", "dataset", "answer",
                                                                     "feedback", "none"};
  return names[static_cast<std::size_t>(source)];
}

double ContextBatch::fraction(ContextSource source) const {
  std::size_t given = 0, of_source = 0;
  for (const Context& context : contexts) {
    given += context.source != ContextSource::kNone;
    of_source += context.source == source;
  }
  if (given == 0 || source == ContextSource::kNone) return 0;
  return static_cast<double>(of_source) / static_cast<double>(given);
}

}  // namespace antisd
