#include "algo/response.h"

#include "core/check.h"

namespace antisd::inline algo {

void check_responses(const ResponseBatch& batch) {
  for (const ResponseGroup& group : batch.groups) {
    ANTISD_CHECK_EQ(group.responses.size(), batch.group_size());
    for (const Response& response : group.responses)
      ANTISD_CHECK_EQ(response.sampling_logp.size(), response.ids.size());
  }
}

std::vector<TokenScores> scores_of(const ResponseBatch& batch, TokenScores Response::*field) {
  std::vector<TokenScores> all;
  for (std::size_t r = 0; r < batch.size(); ++r)
    all.push_back(batch[r].*field);
  return all;
}

}  // namespace antisd::inline algo
