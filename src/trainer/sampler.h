// Sampling of a step's groups: prompts in, responses out.
//
//   ResponseBatch batch = sampler.generate(
//       state.model, prompts, [&](std::size_t p, const ResponseGroup& group) { use(p, group); });
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "algo/response.h"
#include "config/run_config.h"
#include "data/prompts.h"
#include "inference/rollout_engine.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline trainer {

// How responses begin and end. For rollout.partial: what earlier steps sampled, by prompt (empty:
// nothing), and how many new tokens a response gets now (0: no limit).
struct StepSampling {
  std::vector<std::vector<Response>> begun = {};
  std::int64_t pause_after = 0;
  std::function<bool(std::span<const TokenId>)> stops = {};  // as in RolloutOptions
};

class GroupSampler {
 public:
  using OnGroup = std::function<void(std::size_t prompt, const ResponseGroup& group)>;

  // Borrows the tokenizer.
  GroupSampler(const RolloutConfig& config, std::uint64_t seed, std::vector<TokenId> stop_ids,
               const Tokenizer& tokenizer);

  // `on_group` is called as soon as a group has ended, while others still decode. Groups with a
  // paused response have no texts.
  ResponseBatch generate(const CausalLm& policy, const PromptBatch& prompts,
                         const OnGroup& on_group, StepSampling how = {});

  // Frees memory for the update.
  void release() { engine_.release(); }

 private:
  RolloutConfig config_;
  std::uint64_t seed_;
  std::vector<TokenId> stop_ids_;
  const Tokenizer& tokenizer_;
  RolloutEngine engine_;
};

}  // namespace antisd::inline trainer
