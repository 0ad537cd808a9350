#include "inference/scorer.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "core/check.h"
#include "core/error.h"
#include "inference/response_pass.h"
#include "inference/token_runs.h"

namespace antisd::inline inference {
namespace {

void check_ids(const char* what, const std::vector<std::int32_t>& ids, std::int64_t vocabulary) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocabulary) continue;
    throw InputError(fmt::format("the {} holds id {} at position {}; the model knows ids 0 to {}",
                                 what, ids[i], i, vocabulary - 1),
                     {.remedy = "use the tokenizer of this model"});
  }
}

std::int64_t common_prefix(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

// Tokens of a CPU batch: its activations stay in one core's cache.
constexpr std::int64_t kCpuBatchTokens = 512;

// On the CPU, sorted neighbours share prefixes.
std::vector<std::size_t> order_of(std::span<const ScoreRequest> requests, bool sorted) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  if (sorted) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return requests[a].prompt_ids < requests[b].prompt_ids;
    });
  }
  return order;
}

std::vector<RunItem> costs_of(std::span<const ScoreRequest> requests,
                              std::span<const std::size_t> order, bool share) {
  std::vector<RunItem> items;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ScoreRequest& request = requests[order[i]];
    const std::int64_t shared =
        i > 0 && share ? common_prefix(requests[order[i - 1]].prompt_ids, request.prompt_ids) : 0;
    items.push_back({std::ssize(request.prompt_ids) + std::ssize(request.response_ids), shared});
  }
  return items;
}

std::vector<IndexRange> runs_of_part(std::span<const RunItem> items,
                                     const std::vector<IndexRange>& runs,
                                     const ScoreOptions& options) {
  const std::vector<std::size_t> dealt = deal_runs(items, runs, options.parts);
  std::vector<IndexRange> own;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (dealt[i] == options.part) own.push_back(runs[i]);
  return own;
}

// Tokens of a batch. On a GPU a part should not be left without work.
std::int64_t most_tokens(std::span<const RunItem> items, const ScoreOptions& options, bool on_cpu) {
  if (on_cpu || options.parts == 1) return options.max_batch_tokens;
  std::int64_t all = 0;
  for (const RunItem& item : items)
    all += item.tokens - item.shared;
  return std::min(options.max_batch_tokens, all / static_cast<std::int64_t>(options.parts) + 1);
}

}  // namespace

void check_request(const CausalLm& model, const ScoreRequest& request) {
  const ModelShape& shape = model.shape();
  if (request.prompt_ids.empty()) {
    throw InputError("the prompt is empty",
                     {.remedy = "give at least one token, e.g. the beginning-of-text token"});
  }
  if (request.response_ids.empty()) {
    throw InputError("the response is empty", {.remedy = "give at least one token to score"});
  }
  check_ids("prompt", request.prompt_ids, shape.vocabulary);
  check_ids("response", request.response_ids, shape.vocabulary);
  const auto length =
      static_cast<std::int64_t>(request.prompt_ids.size() + request.response_ids.size());
  if (length > shape.max_positions) {
    throw InputError(fmt::format("prompt and response have {} tokens; the model has {} positions "
                                 "(max_position_embeddings)",
                                 length, shape.max_positions),
                     {.remedy = "shorten one of them"});
  }
}

std::vector<TokenScores> score(const CausalLm& model, std::span<const ScoreRequest> requests,
                               const ScoreOptions& options) {
  for (const ScoreRequest& request : requests)
    check_request(model, request);
  const bool on_cpu = model.device().is_cpu(), share = options.pack.share;
  const std::vector<std::size_t> order = order_of(requests, on_cpu && share);
  // One thread processes a whole run; the cut does not depend on the number of threads.
  const std::vector<RunItem> items = costs_of(requests, order, share);
  const std::vector<IndexRange> runs =
      runs_of_part(items,
                   cut_runs(items, {.most = most_tokens(items, options, on_cpu),
                                    .enough = on_cpu ? kCpuBatchTokens : 0}),
                   options);
  std::vector<TokenScores> results(requests.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&](std::int64_t, std::int64_t) {
    const at::NoGradGuard no_grad;  // grad mode is per thread
    for (std::size_t i = next++; i < runs.size(); i = next++) {
      const auto chosen = std::span(order).subspan(runs[i].begin, runs[i].size());
      std::vector<TargetSequence> sequences;
      for (const std::size_t r : chosen)
        sequences.push_back(continuation(requests[r].prompt_ids, requests[r].response_ids));
      const Passage passage = lay_out(sequences, model.device(), options.pack);
      std::vector<TokenScores> scores =
          to_host(passage, score_targets(model, passage, hidden_before_targets(model, passage),
                                         options.temperature));
      for (std::size_t s = 0; s < chosen.size(); ++s)
        results[chosen[s]] = std::move(scores[s]);
    }
  };
  const std::int64_t threads = at::get_num_threads();
  // Ranks that fetch a layer for each other make one pass after the other.
  if (on_cpu && std::ssize(runs) >= threads && model.has_all_layers()) {
    at::parallel_for(0, threads, 1, work);
  } else {
    work(0, 1);
  }
  return results;
}

}  // namespace antisd::inline inference
