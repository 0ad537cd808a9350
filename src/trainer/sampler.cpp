#include "trainer/sampler.h"

#include <algorithm>

#include "algo/response_text.h"
#include "core/check.h"

namespace antisd::inline trainer {

GroupSampler::GroupSampler(const RolloutConfig& config, std::uint64_t seed,
                           std::vector<TokenId> stop_ids, const Tokenizer& tokenizer)
    : config_(config), seed_(seed), stop_ids_(std::move(stop_ids)), tokenizer_(tokenizer) {}

ResponseBatch GroupSampler::generate(const CausalLm& policy, const PromptBatch& prompts,
                                     const OnGroup& on_group) {
  std::vector<RolloutRequest> requests;
  for (const Prompt& prompt : prompts.prompts)
    requests.push_back({prompt.ids, static_cast<int>(config_.group_size), prompt.index});
  RolloutOptions options;
  options.sampling = {
      .temperature = config_.temperature, .top_p = config_.top_p, .top_k = config_.top_k};
  options.max_sequence_tokens = config_.max_sequence_tokens;
  options.stop_ids = stop_ids_;
  options.seed = seed_;
  options.step = prompts.step;

  ResponseBatch batch;
  batch.groups.resize(requests.size());
  const SampleBatch samples = engine_.generate(policy, requests, options, [&](SampleGroup& group) {
    std::vector<Response>& responses = batch.groups[group.request].responses;
    responses = std::move(group.samples);
    add_texts(responses, tokenizer_);
    on_group(group.request, batch.groups[group.request]);
  });
  ANTISD_CHECK_EQ(samples.groups.size(), requests.size());
  check_responses(batch);
  return batch;
}

}  // namespace antisd::inline trainer
