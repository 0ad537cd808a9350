// Three updates compared with plain PyTorch: the change of every weight
// (tools/record_trainer_fixtures.py).
#include <cstring>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/testing.h"
#include "inference/scorer.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "model/weights.h"
#include "trainer/updater.h"

namespace antisd::inline trainer {
namespace {

TEST(UpdateParity, ThreeStepsChangeTheWeightsAsPyTorchDoes) {
  const Json recorded = Json::parse(read_file(testing::fixture("trainer") / "updates.json"));
  PromptBatch prompts;
  ResponseBatch batch;
  std::vector<ScoreRequest> teacher_requests;
  for (const Json& group : recorded["groups"]) {
    prompts.prompts.emplace_back().ids = group["prompt"].get<std::vector<TokenId>>();
    ResponseGroup& responses = batch.groups.emplace_back();
    for (const Json& row : group["rollouts"]) {
      Response& response = responses.responses.emplace_back();
      response.ids = row["response"].get<std::vector<TokenId>>();
      response.sampling_logp.assign(response.ids.size(), 0);
      response.verdict.reward = row["reward"].get<double>();
      teacher_requests.push_back({row["teacher_prompt"].get<std::vector<TokenId>>(), response.ids});
    }
  }
  const auto processes = alone();
  CausalLm model = load_model(testing::fixture("model") / recorded["model"].get<std::string>(),
                              at::kCPU, at::kFloat);
  AdamW optimizer(model, {}, *processes);
  std::map<std::string, at::Tensor> before;
  for (const Parameter& parameter : model.parameters())
    before[parameter.name()] = parameter.value.detach().clone();

  const Method method = resolve_method({}, {});  // AntiSD with the paper's numbers
  const GateReading open{.position = GatePosition::kOpen};
  const Updater updater({.micro_batch_tokens = 40});
  for (std::size_t k = 0; k < recorded["losses"].size(); ++k) {
    const std::vector<TokenScores> teacher = score(model, teacher_requests);
    for (std::size_t r = 0; r < batch.size(); ++r)
      batch[r].teacher = teacher[r];
    set_advantages(batch);
    const Shaping shaping = make_shaping(method, open, {}, batch);
    const UpdateResult result =
        updater.step(model, optimizer, recorded["lr"].get<double>(),
                     {.prompts = prompts, .batch = batch, .shaping = shaping});
    EXPECT_NEAR(result.sums.mean("loss"), recorded["losses"][k].get<double>(), 1e-5);
    EXPECT_NEAR(result.grad_norm, recorded["grad_norms"][k].get<double>(), 1e-4);
  }

  const SafetensorsFile expected(testing::fixture("trainer") / "updates.safetensors");
  double squared_gap = 0, squared = 0;
  for (const auto& [parameter, slice] : model.parameters().stored_tensors()) {
    const SafetensorsTensor* tensor = expected.find(slice->name);
    ASSERT_NE(tensor, nullptr) << slice->name;
    at::Tensor change = at::empty(slice->sizes, at::kFloat);
    ASSERT_EQ(change.nbytes(), tensor->data.size()) << slice->name;
    std::memcpy(change.mutable_data_ptr(), tensor->data.data(), tensor->data.size());
    const at::Tensor ours =
        slice->of(parameter->value.detach()) - slice->of(before.at(parameter->name()));
    squared_gap += (ours - change).to(at::kDouble).square().sum().item<double>();
    squared += change.to(at::kDouble).square().sum().item<double>();
  }
  EXPECT_GT(squared, 0);
  EXPECT_LE(std::sqrt(squared_gap / squared), 1e-4);
}

}  // namespace
}  // namespace antisd::inline trainer
