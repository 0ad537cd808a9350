// For tests of updates: two groups of responses under the small model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "inference/scorer.h"
#include "trainer/testing.h"
#include "trainer/updater.h"

namespace antisd::testing {

// Two groups of four responses of different lengths under the small model, with rewards.
class UpdateTest : public ::testing::Test {
 protected:
  UpdateTest() : model_(make_model()), optimizer_(model_, {}, *processes_) {
    at::set_num_threads(1);
    for (std::uint32_t p = 0; p < 2; ++p) {
      Prompt& prompt = prompts_.prompts.emplace_back();
      prompt.id = fmt::format("p{}", p);
      prompt.index = p;
      for (int i = 0; i < 18; ++i)  // long enough to be shared
        prompt.ids.push_back(static_cast<TokenId>((3 * i + 5 * p) % 20));
      ResponseGroup& group = batch_.groups.emplace_back();
      for (int g = 0; g < 4; ++g) {
        Response& response = group.responses.emplace_back();
        for (int i = 0; i < 3 + 2 * g; ++i)
          response.ids.push_back(static_cast<TokenId>((7 * i + g + 2) % 20));
        response.sampling_logp.assign(response.ids.size(), -3.f);
        response.verdict.reward = g == 1 || g == 3 ? 1.0 : 0.0;
      }
    }
  }

  CausalLm make_model() {
    return load_model(make_small_model(folder_ / "model"), at::kCPU, at::kFloat);
  }

  // Teacher scores under another prompt.
  std::vector<TokenScores> teacher(bool same_prompt) const {
    std::vector<ScoreRequest> requests;
    for (std::size_t r = 0; r < batch_.size(); ++r) {
      std::vector<TokenId> prompt = prompts_.prompts[r / 4].ids;
      if (!same_prompt) prompt.insert(prompt.begin(), {4, 9, 13});
      requests.push_back({prompt, batch_[r].ids});
    }
    return score(model_, requests);
  }

  // Sets what the method needs in the responses before the update.
  Shaping shaping(const std::string& name, bool open, bool same_prompt = false) {
    MethodConfig config;
    config.name = name;
    const Method method = resolve_method(config, {});
    GateReading gate{.statistic = 1, .h_warm = 1, .tau = 0.93};
    gate.position = open ? GatePosition::kOpen : GatePosition::kClosedLow;
    const std::vector<TokenScores> scores = teacher(same_prompt);
    for (std::size_t r = 0; r < batch_.size(); ++r)
      batch_[r].teacher = method.scores_teacher() ? scores[r] : TokenScores();
    set_advantages(batch_);
    return make_shaping(method, gate, {}, batch_);
  }

  // The gradients of all parameters after a pass over the batch, concatenated.
  at::Tensor gradients(Objective& objective, const GradientPassOptions& options = {},
                       const PassBatch* batch = nullptr) {
    const PassBatch plain{.sequences = graded_sequences()};
    micro_batches_ = 0;
    GradientPass pass(
        model_, optimizer_, options,
        [&](std::span<const TargetSequence>, const MicroBatchResult&) { ++micro_batches_; });
    pass.add_gradients(batch != nullptr ? *batch : plain, mean_over(plain.sequences), objective);
    tokens_ = pass.tokens();
    const at::Tensor all = current_gradients();
    optimizer_.drop_gradients();
    return all;
  }

  // s of response r with plain tensor operations, one sequence; with gradients.
  std::vector<at::Tensor> plain_logp(std::size_t r) const {
    std::vector<TokenId> ids = prompts_.prompts[r / 4].ids;
    const std::size_t prompt = ids.size();
    ids.insert(ids.end(), batch_[r].ids.begin(), batch_[r].ids.end());
    const std::vector<std::vector<TokenId>> alone = {ids};
    const at::Tensor logp = at::linear(model_.hidden_states(pack(alone, at::kCPU), Pass::kTraining),
                                       model_.head().weight)
                                .log_softmax(-1);
    std::vector<at::Tensor> own;
    for (std::size_t i = prompt; i < ids.size(); ++i)
      own.push_back(logp[static_cast<std::int64_t>(i) - 1][ids[i]]);
    return own;
  }

  std::vector<TargetSequence> graded_sequences() const {
    return student_sequences(prompts_, batch_, cut_mini_batches(batch_, 1)[0]);
  }
  std::int64_t loss_tokens() const { return mean_over(graded_sequences()).tokens; }

  at::Tensor current_gradients() const {
    std::vector<at::Tensor> parts;
    for (const Parameter& parameter : model_.parameters())
      parts.push_back(parameter.value.grad().detach().clone().flatten());
    return at::cat(parts);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Communicator> processes_ = alone();
  CausalLm model_;
  AdamW optimizer_;
  PromptBatch prompts_;
  ResponseBatch batch_;
  std::int64_t micro_batches_ = 0, tokens_ = 0;  // of the last gradients()
};

}  // namespace antisd::testing
