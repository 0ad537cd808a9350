// Logits, log-probabilities, entropies and gradients against transformers, on small random models
// of every architecture (testdata/model, recorded by tools/record_model_fixtures.py).
#include <map>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "model/testing.h"
#include "model/weights.h"
#include "ops/token_scores.h"

namespace antisd::inline model {
namespace {

struct Expected {
  std::map<std::string, at::Tensor> tensors;
  std::vector<std::vector<std::int32_t>> sequences;

  explicit Expected(const std::filesystem::path& folder) {
    const SafetensorsFile file(folder / "expected.safetensors");
    for (const SafetensorsTensor& tensor : file.tensors()) {
      const auto type = tensor.type == TensorType::kI64 ? at::kLong : at::kFloat;
      at::Tensor copy = at::empty(tensor.shape, at::TensorOptions().dtype(type));
      std::memcpy(copy.mutable_data_ptr(), tensor.data.data(), tensor.data.size());
      tensors[tensor.name] = copy;
    }
    const at::Tensor ids = tensors["ids"], offsets = tensors["sequence_offsets"];
    for (std::int64_t i = 0; i + 1 < offsets.size(0); ++i) {
      std::vector<std::int32_t>& sequence = sequences.emplace_back();
      for (auto t = offsets[i].item<std::int64_t>(); t < offsets[i + 1].item<std::int64_t>(); ++t) {
        sequence.push_back(ids[t].item<std::int32_t>());
      }
    }
  }
};

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

class Parity : public ::testing::TestWithParam<std::string> {
 protected:
  const std::filesystem::path folder_ = testing::fixture("model") / GetParam();
  const Expected expected_{folder_};
  CausalLm model_ = load_model(folder_, at::kCPU, at::kFloat);

  // The packed rows in the order of the fixture's tokens.
  at::Tensor fixture_rows(const PackedBatch& batch) const {
    std::vector<std::int64_t> rows;
    for (const auto& sequence : batch.rows)
      rows.insert(rows.end(), sequence.begin(), sequence.end());
    return at::tensor(at::ArrayRef<std::int64_t>(rows), at::kLong);
  }
};

TEST_P(Parity, LogitsOfPackedSequences) {
  const at::NoGradGuard no_grad;
  const PackedBatch batch = pack(expected_.sequences, at::kCPU);
  const at::Tensor hidden = model_.hidden_states(batch).index_select(0, fixture_rows(batch));
  EXPECT_LT(
      largest_difference(at::linear(hidden, model_.head().weight), expected_.tensors.at("logits")),
      1e-4);
}

TEST_P(Parity, PackedEqualsOneByOne) {
  const at::NoGradGuard no_grad;
  const PackedBatch batch = pack(expected_.sequences, at::kCPU);
  const at::Tensor packed = model_.hidden_states(batch).index_select(0, fixture_rows(batch));
  std::int64_t row = 0;
  for (const auto& sequence : expected_.sequences) {
    const at::Tensor alone = model_.hidden_states(pack({&sequence, 1}, at::kCPU));
    EXPECT_LT(largest_difference(packed.narrow(0, row, alone.size(0)), alone), 1e-5);
    row += alone.size(0);
  }
}

// A common prefix is computed once; neither this nor gradient checkpointing changes the results.
TEST_P(Parity, SharedPrefixesChangeNothing) {
  const std::vector<std::int32_t>& longest = expected_.sequences[2];
  std::vector<std::vector<std::int32_t>> family;
  for (const std::size_t shared : {20, 12, 12, 5}) {
    family.push_back({longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(shared)});
    for (int i = 0; i < 6; ++i)
      family.back().push_back(static_cast<std::int32_t>((7 * family.size() + i) % 30));
  }
  const PackedBatch apart = pack(family, at::kCPU, {.share = false});
  const PackedBatch together = pack(family, at::kCPU, {.least_shared = 3});
  EXPECT_LT(together.tokens(), apart.tokens());
  model_.parameters().require_gradients();
  const auto gradients = [&](const PackedBatch& batch, Pass pass, std::size_t kept = 0) {
    const at::Tensor hidden =
        model_.hidden_states(batch, pass, kept).index_select(0, fixture_rows(batch));
    hidden.square().sum().backward();
    std::vector<at::Tensor> result = {hidden.detach()};
    for (Parameter& parameter : model_.parameters()) {
      if (!parameter.value.grad().defined()) continue;  // an untied head is not used
      result.push_back(parameter.value.grad().clone());
      parameter.value.mutable_grad().reset();
    }
    return result;
  };
  const auto reference = gradients(apart, Pass::kTraining),
             shared = gradients(together, Pass::kTraining);
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double scale = std::max(1.0, reference[i].abs().max().item<double>());
    EXPECT_LT(largest_difference(reference[i], shared[i]), 1e-5 * scale) << i;
  }
  // However many layers are recomputed, not a bit changes.
  for (std::size_t kept = 0; kept <= model_.shape().layers.size(); ++kept) {
    const auto recomputed = gradients(together, Pass::kRecomputed, kept);
    ASSERT_EQ(recomputed.size(), shared.size());
    for (std::size_t i = 0; i < shared.size(); ++i)
      EXPECT_TRUE(at::equal(recomputed[i], shared[i])) << kept << " layers kept, " << i;
  }
}

TEST_P(Parity, ScoresAndGradients) {
  const PackedBatch batch = pack(expected_.sequences, at::kCPU);
  model_.parameters().require_gradients();
  const at::Tensor hidden =
      model_.hidden_states(batch, Pass::kTraining).index_select(0, fixture_rows(batch));
  // The targets: each sequence's next token; the last position has none.
  std::vector<std::int64_t> positions;
  std::vector<std::int32_t> targets;
  std::int64_t row = 0;
  for (const auto& sequence : expected_.sequences) {
    for (std::size_t i = 0; i + 1 < sequence.size(); ++i) {
      positions.push_back(row + static_cast<std::int64_t>(i));
      targets.push_back(sequence[i + 1]);
    }
    row += static_cast<std::int64_t>(sequence.size());
  }
  const at::Tensor where = at::tensor(at::ArrayRef<std::int64_t>(positions), at::kLong);
  const auto scores = token_scores(hidden.index_select(0, where), model_.head().weight,
                                   at::tensor(at::ArrayRef<std::int32_t>(targets), at::kInt), 1.0,
                                   model_.shape().vocabulary, Gradients::kRecorded,
                                   {.tokens = 7, .vocabulary = 13});
  EXPECT_LT(largest_difference(scores.logp, expected_.tensors.at("logp").index_select(0, where)),
            1e-4);
  EXPECT_LT(
      largest_difference(scores.entropy, expected_.tensors.at("entropy").index_select(0, where)),
      1e-4);

  const at::Tensor weights = expected_.tensors.at("loss_weights").index_select(0, where);
  ((weights * scores.logp).sum() + 0.1 * scores.entropy.sum()).backward();
  int compared = 0;
  for (const auto& [parameter, slice] : model_.parameters().stored_tensors()) {
    const at::Tensor gradient = slice->of(parameter->value.grad());
    const at::Tensor& reference = expected_.tensors.at("grad." + slice->name);
    const double scale = reference.abs().max().item<double>();
    EXPECT_LT(largest_difference(gradient, reference), 1e-3 * scale + 1e-6) << slice->name;
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

TEST_P(Parity, TheOlderSpellingOfTheConfigurationIsTheSameModel) {
  const at::NoGradGuard no_grad;
  CausalLm older(read_model_shape(folder_ / "config_v4.json"), at::kCPU, at::kFloat);
  load_weights(older, folder_);
  const PackedBatch batch = pack(expected_.sequences, at::kCPU);
  EXPECT_TRUE(older.hidden_states(batch).equal(model_.hidden_states(batch)));
}

TEST_P(Parity, SavedWeightsLoadToTheSameBytes) {
  const testing::TemporaryFolder folder;
  save_model(model_, folder_, folder.path(), at::kFloat);
  const CausalLm again = load_model(folder.path(), at::kCPU, at::kFloat);
  for (const Parameter& parameter : model_.parameters()) {
    EXPECT_TRUE(again.parameters().at(parameter.name()).value.equal(parameter.value))
        << parameter.name();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Parity, ::testing::ValuesIn(testing::recorded_models()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace antisd::inline model
