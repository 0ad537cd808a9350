#ifdef ANTISD_TORCH

#include "bench/synthetic_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "algo/response_text.h"

namespace antisd::bench {
namespace {

// In mixed order.
std::vector<std::int64_t> draw_lengths(const SyntheticSizes& sizes) {
  std::vector<std::int64_t> lengths;
  const int count = sizes.prompts * sizes.group;
  for (int i = 0; i < count; ++i) {
    const int mixed = static_cast<int>(i * 7919LL % count);
    const double quantile = (mixed + 0.5) / count;
    const auto length = std::llround(-static_cast<double>(sizes.mean) * std::log(1 - quantile));
    lengths.push_back(std::clamp<std::int64_t>(length, 1, sizes.longest));
  }
  return lengths;
}

float random_float(std::uint32_t& state) {  // from 0 to 1
  state = state * 1'664'525u + 1'013'904'223u;
  return static_cast<float>(state >> 8) / (1 << 24);
}

TokenScores random_scores(std::size_t tokens, std::uint32_t& state) {
  TokenScores scores;
  for (std::size_t i = 0; i < tokens; ++i) {
    scores.logp.push_back(-2 * random_float(state));
    scores.entropy.push_back(random_float(state));
  }
  return scores;
}

}  // namespace

SyntheticStep::SyntheticStep(const std::string& model, const std::string& data,
                             const SyntheticSizes& sizes)
    : renderer(Tokenizer::load(model), std::nullopt, config.data),
      problems(PromptSet::load({.files = {data}, .map = {}, .count_tokens = {}})) {
  config.options().assign("reward.kind=math");
  config.options().assign("method.name=antisd");
  config.resolve();
  method = resolve_method(config.method, config.loss);
  indices.resize(static_cast<std::size_t>(sizes.prompts));
  std::iota(indices.begin(), indices.end(), 0);
  std::uint32_t state = 1;
  std::size_t next = 0;
  for (const std::int64_t length : draw_lengths(sizes)) {
    if (batch.groups.empty() || std::ssize(batch.groups.back().responses) == sizes.group)
      batch.groups.emplace_back();
    Response& response = batch.groups.back().responses.emplace_back();
    while (std::ssize(response.ids) < length) {
      const Problem& problem = problems[next++ % problems.size()];
      const std::vector<TokenId> ids =
          renderer.tokenizer().encode(problem.solution.value_or(problem.problem) + "\n\n");
      response.ids.insert(response.ids.end(), ids.begin(), ids.end());
    }
    response.ids.resize(static_cast<std::size_t>(length));
    const TokenScores sampled = random_scores(response.ids.size(), state);
    response.sampling_logp = response.raw_logp = sampled.logp;
    response.verdict.reward = random_float(state) < 0.5 ? 1.0 : 0.0;
    students.push_back(random_scores(response.ids.size(), state));
    teachers.push_back(random_scores(response.ids.size(), state));
    tokens += length;
  }
  for (ResponseGroup& group : batch.groups)
    add_texts(group.responses, renderer.tokenizer());
}

}  // namespace antisd::bench

#endif
