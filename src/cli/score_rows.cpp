#ifdef ANTISD_TORCH

#include "cli/score_rows.h"

#include "core/check.h"

namespace antisd {

int score_rows(const RowStreamOptions& rows, const CausalLm& model, const ScoreOptions& options,
               const std::function<ScoreRequest(const Json& row)>& read) {
  std::vector<ScoreRequest> kept;
  const auto keep = [&](const Json& row) {
    ScoreRequest request = read(row);
    check_request(model, request);
    kept.push_back(std::move(request));
    return static_cast<std::int64_t>(kept.back().prompt_ids.size() +
                                     kept.back().response_ids.size());
  };
  const auto work = [&](std::size_t count) {
    ANTISD_CHECK_LE(count, kept.size());
    std::vector<Json> results;
    for (const TokenScores& scores : score(model, {kept.data(), count}, options))
      results.push_back({{"logp", scores.logp}, {"entropy", scores.entropy}});
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count));
    return results;
  };
  return run_row_batches(rows, {keep, work, options.max_batch_tokens});
}

}  // namespace antisd

#endif
