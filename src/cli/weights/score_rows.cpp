
#include "cli/weights/score_rows.h"

#include <fmt/format.h>

#include "core/check.h"
#include "inference/finite_scores.h"

namespace antisd::inline cli {

int score_rows(const RowStreamOptions& rows, const CausalLm& model, const ScoreOptions& options,
               const std::function<ScoreRequest(const Json& row)>& read) {
  std::vector<ScoreRequest> kept;
  std::vector<std::string> names;  // of the rows kept
  std::int64_t seen = 0;
  const auto keep = [&](const Json& row) {
    ++seen;
    ScoreRequest request = read(row);
    check_request(model, request);
    kept.push_back(std::move(request));
    names.push_back(row.contains("id") ? "the row with id " + to_json_line(row["id"])
                                       : fmt::format("row {}", seen));
    return static_cast<std::int64_t>(kept.back().prompt_ids.size() +
                                     kept.back().response_ids.size());
  };
  const auto work = [&](std::size_t count) {
    ANTISD_CHECK_LE(count, kept.size());
    const std::vector<TokenScores> all = score(model, {kept.data(), count}, options);
    check_finite(model, all, [&](std::size_t i) { return names[i]; });
    std::vector<Json> results;
    for (const TokenScores& scores : all)
      results.push_back({{"logp", scores.logp}, {"entropy", scores.entropy}});
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count));
    names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count));
    return results;
  };
  return run_row_batches(rows, {keep, work, options.max_batch_tokens});
}

}  // namespace antisd::inline cli
