#include "scoring/scorer.h"

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

// Scores requests [begin, end) in one pass.
void score_batch(const CausalLm& model, std::span<const ScoreRequest> requests,
                 const ScoreOptions& options, std::vector<ResponseScores>& results) {
  std::vector<std::vector<std::int32_t>> sequences;
  for (const ScoreRequest& request : requests) {
    std::vector<std::int32_t>& ids = sequences.emplace_back(request.prompt_ids);
    ids.insert(ids.end(), request.response_ids.begin(), request.response_ids.end());
  }
  const PackedBatch batch = pack(sequences, model.device(), options.pack);
  // The row before a token predicts it.
  std::vector<std::int64_t> rows;
  std::vector<std::int32_t> targets;
  for (std::size_t s = 0; s < requests.size(); ++s) {
    const std::size_t prompt = requests[s].prompt_ids.size();
    for (std::size_t i = 0; i < requests[s].response_ids.size(); ++i) {
      rows.push_back(batch.rows[s][prompt + i - 1]);
      targets.push_back(requests[s].response_ids[i]);
    }
  }
  const at::Tensor where =
      at::tensor(at::ArrayRef<std::int64_t>(rows), at::kLong).to(model.device());
  const at::Tensor ids =
      at::tensor(at::ArrayRef<std::int32_t>(targets), at::kInt).to(model.device());
  const at::Tensor hidden = model.hidden_states(batch).index_select(0, where);
  const TokenScoreTensors scores =
      token_scores(hidden, model.head(), ids, options.temperature, model.shape().vocabulary);
  const at::Tensor logp = scores.logp.to(at::kCPU), entropy = scores.entropy.to(at::kCPU);
  const float* next_logp = logp.const_data_ptr<float>();
  const float* next_entropy = entropy.const_data_ptr<float>();
  for (const ScoreRequest& request : requests) {
    const std::size_t count = request.response_ids.size();
    results.push_back({{next_logp, next_logp + count}, {next_entropy, next_entropy + count}});
    next_logp += count;
    next_entropy += count;
  }
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

std::vector<ResponseScores> score(const CausalLm& model, std::span<const ScoreRequest> requests,
                                  const ScoreOptions& options) {
  for (const ScoreRequest& request : requests)
    check_request(model, request);
  const at::NoGradGuard no_grad;
  std::vector<ResponseScores> results;
  for (std::size_t begin = 0; begin < requests.size();) {
    std::size_t end = begin;
    std::int64_t tokens = 0;
    while (end < requests.size()) {
      tokens += static_cast<std::int64_t>(requests[end].prompt_ids.size() +
                                          requests[end].response_ids.size());
      if (end > begin && tokens > options.max_batch_tokens) break;
      ++end;
    }
    score_batch(model, requests.subspan(begin, end - begin), options, results);
    begin = end;
  }
  return results;
}

}  // namespace antisd
