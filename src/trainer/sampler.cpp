#include "trainer/sampler.h"

#include <algorithm>

#include "algo/response_text.h"
#include "core/check.h"

namespace antisd::inline trainer {

GroupSampler::GroupSampler(const RolloutConfig& config, std::uint64_t seed,
                           std::vector<TokenId> stop_ids, const Tokenizer& tokenizer)
    : config_(config), seed_(seed), stop_ids_(std::move(stop_ids)), tokenizer_(tokenizer) {}

ResponseBatch GroupSampler::generate(const CausalLm& policy, const PromptBatch& prompts,
                                     const OnGroup& on_group, StepSampling how) {
  how.begun.resize(prompts.prompts.size());
  std::vector<RolloutRequest> requests;
  for (std::size_t p = 0; p < prompts.prompts.size(); ++p) {
    const Prompt& prompt = prompts.prompts[p];
    requests.push_back({.prompt_ids = prompt.ids,
                        .samples = static_cast<int>(config_.group_size),
                        .prompt = prompt.index,
                        .step = prompt.step,
                        .begun = std::move(how.begun[p])});
  }
  RolloutOptions options;
  options.sampling = {
      .temperature = config_.temperature, .top_p = config_.top_p, .top_k = config_.top_k};
  options.max_sequence_tokens = config_.max_sequence_tokens;
  options.pause_after = how.pause_after;
  options.stop_ids = stop_ids_;
  options.stops = std::move(how.stops);
  options.seed = seed_;

  ResponseBatch batch;
  batch.groups.resize(requests.size());
  SampleBatch samples = engine_.generate(policy, requests, options, [&](SampleGroup& group) {
    std::vector<Response>& responses = batch.groups[group.request].responses;
    responses = std::move(group.samples);
    add_texts(responses, tokenizer_);
    on_group(group.request, batch.groups[group.request]);
  });
  ANTISD_CHECK_EQ(samples.groups.size() + samples.paused.size(), requests.size());
  for (SampleGroup& group : samples.paused)
    batch.groups[group.request].responses = std::move(group.samples);
  check_responses(batch);
  return batch;
}

}  // namespace antisd::inline trainer
