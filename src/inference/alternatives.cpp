#include "inference/alternatives.h"

#include <algorithm>
#include <numeric>

namespace antisd::inline inference {

std::vector<Alternative> likeliest(const float* logits, std::int64_t vocabulary, int count,
                                   const SampledToken& sampled) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(vocabulary));
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min<std::int64_t>(count, vocabulary);
  std::partial_sort(ids.begin(), end, ids.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<Alternative> found;
  for (auto id = ids.begin(); id != end; ++id)
    found.push_back({*id, logits[*id] - logits[sampled.id] + sampled.raw_logp});
  return found;
}

}  // namespace antisd::inline inference
