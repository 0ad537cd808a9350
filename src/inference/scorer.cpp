#include "inference/scorer.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "core/check.h"
#include "core/error.h"
#include "ops/token_scores.h"

namespace antisd {
namespace {

void check_ids(const char* what, const std::vector<std::int32_t>& ids, std::int64_t vocabulary) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocabulary) continue;
    throw InputError(fmt::format("the {} holds id {} at position {}; the model knows ids 0 to {}",
                                 what, ids[i], i, vocabulary - 1),
                     {.remedy = "use the tokenizer of this model"});
  }
}

// Scores the chosen requests in one pass.
void score_batch(const CausalLm& model, std::span<const ScoreRequest> requests,
                 std::span<const std::size_t> chosen, const ScoreOptions& options,
                 std::vector<TokenScores>& results) {
  std::vector<std::vector<std::int32_t>> sequences;
  for (const std::size_t r : chosen) {
    std::vector<std::int32_t>& ids = sequences.emplace_back(requests[r].prompt_ids);
    ids.insert(ids.end(), requests[r].response_ids.begin(), requests[r].response_ids.end());
  }
  const PackedBatch batch = pack(sequences, model.device(), options.pack);
  // The row before a token predicts it.
  std::vector<std::int64_t> rows;
  std::vector<std::int32_t> targets;
  for (std::size_t s = 0; s < chosen.size(); ++s) {
    const ScoreRequest& request = requests[chosen[s]];
    const std::size_t prompt = request.prompt_ids.size();
    for (std::size_t i = 0; i < request.response_ids.size(); ++i) {
      rows.push_back(batch.rows[s][prompt + i - 1]);
      targets.push_back(request.response_ids[i]);
    }
  }
  const at::Tensor where =
      at::tensor(at::ArrayRef<std::int64_t>(rows), at::kLong).to(model.device());
  const at::Tensor ids =
      at::tensor(at::ArrayRef<std::int32_t>(targets), at::kInt).to(model.device());
  const at::Tensor hidden = model.hidden_states(batch).index_select(0, where);
  const TokenScoreTensors scores =
      token_scores(hidden, model.head().weight, ids, options.temperature, model.shape().vocabulary);
  const at::Tensor logp = scores.logp.to(at::kCPU), entropy = scores.entropy.to(at::kCPU);
  const float* next_logp = logp.const_data_ptr<float>();
  const float* next_entropy = entropy.const_data_ptr<float>();
  for (const std::size_t r : chosen) {
    const std::size_t count = requests[r].response_ids.size();
    results[r] = {{next_logp, next_logp + count}, {next_entropy, next_entropy + count}};
    next_logp += count;
    next_entropy += count;
  }
}

std::int64_t length_of(const ScoreRequest& request) {
  return static_cast<std::int64_t>(request.prompt_ids.size() + request.response_ids.size());
}

std::int64_t common_prefix(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

// Tokens of a batch on the CPU: activations that stay in one core's cache.
constexpr std::int64_t kCpuBatchTokens = 512;

struct Batches {
  std::vector<std::size_t> order;  // of the requests
  std::vector<std::size_t> ends;   // of each batch in `order`
};

// Runs of requests up to the greatest number of tokens. On the CPU neighbours share what they can,
// and a run ends as soon as it is long enough that what the next request would share with it hardly
// matters: one thread takes each run from end to end. The cut does not depend on the number of
// threads.
Batches cut_batches(std::span<const ScoreRequest> requests, const ScoreOptions& options,
                    bool on_cpu) {
  Batches batches;
  batches.order.resize(requests.size());
  std::iota(batches.order.begin(), batches.order.end(), 0);
  if (on_cpu && options.pack.share) {
    std::stable_sort(batches.order.begin(), batches.order.end(), [&](std::size_t a, std::size_t b) {
      return requests[a].prompt_ids < requests[b].prompt_ids;
    });
  }
  std::int64_t computed = 0;  // tokens of the run so far, what is shared counted once
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const ScoreRequest& request = requests[batches.order[i]];
    const std::int64_t length = length_of(request);
    const std::int64_t shared =
        i > 0 && options.pack.share
            ? common_prefix(requests[batches.order[i - 1]].prompt_ids, request.prompt_ids)
            : 0;
    const bool long_enough = on_cpu && computed >= std::max(kCpuBatchTokens, 16 * shared);
    if (i > 0 && (long_enough || computed + length - shared > options.max_batch_tokens)) {
      batches.ends.push_back(i);
      computed = 0;
    }
    computed += computed > 0 ? length - shared : length;
  }
  if (!requests.empty()) batches.ends.push_back(requests.size());
  return batches;
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
  const bool on_cpu = model.device().is_cpu();
  const Batches batches = cut_batches(requests, options, on_cpu);
  std::vector<TokenScores> results(requests.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&](std::int64_t, std::int64_t) {
    const at::NoGradGuard no_grad;  // of the thread
    for (std::size_t i = next++; i < batches.ends.size(); i = next++) {
      const std::size_t begin = i == 0 ? 0 : batches.ends[i - 1];
      score_batch(model, requests, std::span(batches.order).subspan(begin, batches.ends[i] - begin),
                  options, results);
    }
  };
  const std::int64_t threads = at::get_num_threads();
  if (on_cpu && static_cast<std::int64_t>(batches.ends.size()) >= threads) {
    at::parallel_for(0, threads, 1, work);
  } else {
    work(0, 1);
  }
  return results;
}

}  // namespace antisd
