#include "trainer/pretrain/document_objective.h"

#include <map>
#include <string>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "core/testing.h"
#include "model/testing.h"
#include "model/weights.h"
#include "trainer/gradient_pass.h"
#include "trainer/pretrain/new_model.h"

namespace antisd::inline trainer {
namespace {

using ::testing::HasSubstr;

std::vector<TrainingDocument> documents() {
  std::vector<TrainingDocument> all(3);
  all[0].ids = {1, 2, 3, 4, 5};
  all[0].counts = {false, true, true, true, true};
  all[1].ids = {7, 8, 9, 10, 11, 12, 13};  // two turns
  all[1].counts = {false, false, true, false, false, true, true};
  all[2].ids = {30, 31};
  all[2].counts = {false, true};
  return all;
}

struct Small {
  Small() : model(parse_model_shape(testing::small_config(), "small"), at::kCPU, at::kFloat) {
    initialise_randomly(model, 3, 0.3);
    optimizer.emplace(model, AdamWOptions{}, *processes);
  }
  std::unique_ptr<Communicator> processes = alone();
  // The mean loss; leaves the gradients in the parameters.
  double add_gradients(std::span<const TrainingDocument> all, GradientPassOptions options = {}) {
    options.pack.share = false;
    const PassBatch batch{.sequences = document_sequences(all)};
    DocumentObjective objective;
    GradientPass(model, *optimizer, options)
        .add_gradients(batch, mean_over(batch.sequences), objective);
    return objective.sums.mean("loss");
  }

  CausalLm model;
  std::optional<AdamW> optimizer;
};

// Each document by itself, all logits at once, in double.
double plain_cross_entropy(const CausalLm& model, std::span<const TrainingDocument> all) {
  const at::NoGradGuard no_grad;
  double sum = 0;
  int count = 0;
  for (const TrainingDocument& document : all) {
    const at::Tensor hidden = model.hidden_states(pack({{document.ids}}, at::kCPU));
    const at::Tensor logp = at::log_softmax(
        hidden.to(at::kDouble).matmul(model.head().weight.to(at::kDouble).t()), /*dim=*/-1);
    for (std::size_t i = 1; i < document.ids.size(); ++i) {
      if (!document.counts[i]) continue;
      sum -= logp[std::int64_t(i) - 1][document.ids[i]].item<double>();
      ++count;
    }
  }
  return sum / count;
}

TEST(DocumentObjective, IsTheCrossEntropyOfTheTokensThatCount) {
  Small small;
  const std::vector<TrainingDocument> all = documents();
  const std::vector<TargetSequence> sequences = document_sequences(all);
  EXPECT_EQ(mean_over(sequences).tokens, 8);
  EXPECT_EQ(mean_over(sequences).sequences, std::ssize(sequences));
  DocumentObjective objective;
  measure(small.model, *small.processes, sequences, {.micro_batch_tokens = 7}, mean_over(sequences),
          objective);
  EXPECT_EQ(objective.sums.at("loss").count, 8);
  EXPECT_NEAR(objective.sums.mean("loss"), plain_cross_entropy(small.model, all), 1e-6);
}

TEST(DocumentObjective, GradientIsThatOfTheMeanHoweverItIsCut) {
  Small small;
  const std::vector<TrainingDocument> all = documents();
  std::map<std::string, at::Tensor> whole;
  EXPECT_NEAR(small.add_gradients(all), plain_cross_entropy(small.model, all), 1e-6);
  for (const Parameter& parameter : small.model.parameters())
    whole[parameter.name()] = parameter.value.grad().clone();
  // A finite difference along the gradient.
  double squared = 0;
  for (const auto& [name, gradient] : whole)
    squared += gradient.to(at::kDouble).square().sum().item<double>();
  const double before = plain_cross_entropy(small.model, all), little = 1e-3;
  small.optimizer->drop_gradients();
  {
    const at::NoGradGuard no_grad;
    for (Parameter& parameter : small.model.parameters())
      parameter.value.add_(whole.at(parameter.name()), -little / std::sqrt(squared));
    EXPECT_NEAR((before - plain_cross_entropy(small.model, all)) / little, std::sqrt(squared),
                0.02 * std::sqrt(squared));
    for (Parameter& parameter : small.model.parameters())
      parameter.value.add_(whole.at(parameter.name()), little / std::sqrt(squared));
  }
  EXPECT_EQ(cut_sequences(document_sequences(all), 7).size(), 3u);  // 5, 7, 2: no two fit together
  EXPECT_EQ(cut_sequences(document_sequences(all), 12).size(), 2u);
  small.add_gradients(all, {.micro_batch_tokens = 7});
  for (const Parameter& parameter : small.model.parameters()) {
    EXPECT_TRUE(at::allclose(parameter.value.grad(), whole.at(parameter.name()), 1e-4, 1e-6))
        << parameter.name();
  }
}

TEST(NewModel, IsADirectoryThatTheModelIsMadeFrom) {
  const testing::TemporaryFolder folder;
  NewModelConfig shape;
  shape.hidden = 192;
  write_new_model(shape, "", folder / "new");
  const ModelShape read = read_model_shape(folder / "new" / "config.json");
  EXPECT_EQ(read.vocabulary, 448);  // 423 tokens, rounded up
  EXPECT_EQ(read.kv_heads, 6);
  EXPECT_TRUE(read.tied_head);
  EXPECT_NEAR(static_cast<double>(read.parameter_count()), 1.86e6, 0.01e6);
  // The tokenizer of another directory.
  shape.vocabulary = 100;
  EXPECT_THAT(testing::error_of([&] { write_new_model(shape, folder / "new", folder / "x"); }),
              HasSubstr("too few for the tokenizer's 423 tokens"));
  shape.vocabulary = 500;
  write_new_model(shape, folder / "new", folder / "x");
  EXPECT_EQ(read_model_shape(folder / "x" / "config.json").vocabulary, 500);
}

}  // namespace
}  // namespace antisd::inline trainer
