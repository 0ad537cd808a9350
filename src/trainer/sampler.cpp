#include "trainer/sampler.h"

#include <algorithm>

#include "core/check.h"

namespace antisd {

RolloutGroup to_rollouts(const SampleGroup& group, const Tokenizer& tokenizer) {
  RolloutGroup rollouts;
  for (const RolloutSample& sample : group.samples) {
    std::vector<TokenId> known = sample.ids;
    std::erase_if(known, [&](TokenId id) { return id >= tokenizer.vocabulary_size(); });
    rollouts.rollouts.push_back({.response_ids = sample.ids,
                                 .sampling_logp = sample.logp,
                                 .finish_reason = sample.finish,
                                 .text = tokenizer.decode(known, /*skip_special_tokens=*/true),
                                 .grade = {}});
  }
  return rollouts;
}

GroupSampler::GroupSampler(const RolloutConfig& config, std::uint64_t seed,
                           std::vector<TokenId> stop_ids, const Tokenizer& tokenizer)
    : config_(config), seed_(seed), stop_ids_(std::move(stop_ids)), tokenizer_(tokenizer) {}

RolloutBatch GroupSampler::generate(const CausalLm& policy, const PromptBatch& prompts,
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

  RolloutBatch batch;
  batch.groups.resize(requests.size());
  const SampleBatch samples =
      engine_.generate(policy, requests, options, [&](const SampleGroup& group) {
        batch.groups[group.request] = to_rollouts(group, tokenizer_);
        on_group(group.request, batch.groups[group.request]);
      });
  ANTISD_CHECK_EQ(samples.groups.size(), requests.size());
  check_rollouts(batch);
  return batch;
}

}  // namespace antisd
