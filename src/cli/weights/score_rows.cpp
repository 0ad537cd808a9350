
#include "cli/weights/score_rows.h"

#include <fmt/format.h>

#include "core/check.h"
#include "dist/agreement.h"
#include "inference/finite_scores.h"

namespace antisd::inline cli {

namespace {

using Score = std::function<std::vector<TokenScores>(std::span<const ScoreRequest>)>;

int score_stream(const RowStreamOptions& rows, const CausalLm& model, std::int64_t batch_tokens,
                 const Score& score_all, const std::function<ScoreRequest(const Json& row)>& read) {
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
    const std::vector<TokenScores> all = score_all({kept.data(), count});
    check_finite(model, all, [&](std::size_t i) { return names[i]; });
    std::vector<Json> results;
    for (const TokenScores& scores : all)
      results.push_back({{"logp", scores.logp}, {"entropy", scores.entropy}});
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count));
    names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count));
    return results;
  };
  return run_row_batches(rows, {keep, work, batch_tokens});
}

}  // namespace

int score_rows(const RowStreamOptions& rows, const CausalLm& model, const ScoreOptions& options,
               Communicator& ranks, const std::function<ScoreRequest(const Json& row)>& read) {
  int status = 0;
  // On a GPU each rank gets a whole batch. On a CPU batches are cut as for one rank, so that the
  // scores are the same bits.
  const std::int64_t batch_tokens =
      options.max_batch_tokens * (model.device().is_cpu() ? 1 : ranks.size());
  const auto score_given = [&](std::span<const ScoreRequest> requests) {
    return score_together(ranks, model, given_by_first(ranks, requests), options);
  };
  lead(
      ranks,
      [&](const std::function<void()>& call) {
        status = score_stream(
            rows, model, batch_tokens,
            [&](std::span<const ScoreRequest> requests) {
              if (ranks.size() == 1) return score(model, requests, options);
              call();
              return score_given(requests);
            },
            read);
      },
      [&] { score_given({}); });
  return status;
}

}  // namespace antisd::inline cli
