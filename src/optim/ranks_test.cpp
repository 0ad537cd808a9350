// AdamW on several ranks against one process with the same micro-batches: the same bits.
#include <cstring>
#include <mutex>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "dist/in_process.h"
#include "model/testing.h"
#include "model/weights.h"
#include "optim/adamw.h"

namespace antisd::inline optim {
namespace {

constexpr int kSteps = 4;
constexpr AdamWOptions kClipping = {.weight_decay = 0.1, .grad_clip = 3.0};

CausalLm random_model(at::ScalarType dtype) {
  Json config = testing::small_config();
  config["hidden_size"] = 72;  // parameters of several update blocks, and gaps between them
  config["intermediate_size"] = 200;
  CausalLm model(parse_model_shape(config, "small"), at::kCPU, dtype);
  initialise_randomly(model, 5, 0.3);
  return model;
}

// The backward pass of a micro-batch: a gradient that depends on the weights. One parameter has
// none at all, and another only in the first micro-batch.
void go_back(CausalLm& model, int step, int micro_batch) {
  at::Tensor loss = at::zeros({});
  std::int64_t number = 0;
  for (const Parameter& parameter : model.parameters()) {
    ++number;
    if (parameter.name() == "layers.1.qkv") continue;
    if (parameter.name() == "layers.0.qkv" && micro_batch > 0) continue;
    const at::Tensor wave =
        (at::arange(parameter.value.numel(), at::kFloat) * static_cast<float>(number) +
         static_cast<float>(7 * step + micro_batch))
            .sin()
            .view(parameter.value.sizes());
    loss = loss + (parameter.value.to(at::kFloat).square() * wave).sum();
  }
  loss.backward();
}

// Everything that training depends on, as bytes; `norms` of all steps.
struct Outcome {
  std::string bytes;
  std::vector<double> norms, scales;
};

void add_bytes(Outcome& outcome, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  outcome.bytes.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
}

Outcome outcome_of(const CausalLm& model, const AdamW& optimizer, Outcome outcome) {
  for (const Parameter& parameter : model.parameters())
    add_bytes(outcome, parameter.value);
  for (const ParameterBlock& block : model.parameters().blocks()) {
    for (const auto kind : {&ParameterBlock::masters, &ParameterBlock::first_moments,
                            &ParameterBlock::second_moments})
      add_bytes(outcome, optimizer.whole(block, kind));
  }
  return outcome;
}

void note(Outcome& outcome, const UpdateReport& report) {
  EXPECT_TRUE(report.applied);
  outcome.norms.push_back(report.grad_norm);
  outcome.scales.push_back(report.clip_scale);
}

Outcome train_alone(at::ScalarType dtype, int micro_batches, ShardOptions shard = {}) {
  CausalLm model = random_model(dtype);
  const std::unique_ptr<Communicator> one = alone();
  AdamW optimizer(model, kClipping, *one, shard);
  Outcome outcome;
  for (int step = 0; step < kSteps; ++step) {
    for (int m = 0; m < micro_batches; ++m) {
      if (micro_batches > 1) optimizer.begin_round(1);
      go_back(model, step, m);
      if (micro_batches > 1) optimizer.end_round();
    }
    note(outcome, optimizer.step(1e-2));
  }
  return outcome_of(model, optimizer, std::move(outcome));
}

Outcome train_as(Communicator& ranks, at::ScalarType dtype, int micro_batches, ShardOptions shard) {
  CausalLm model = random_model(dtype);
  AdamW optimizer(model, kClipping, ranks, shard);
  Outcome outcome;
  for (int step = 0; step < kSteps; ++step) {
    for (int first = 0; first < micro_batches; first += ranks.size()) {
      const int active = std::min(ranks.size(), micro_batches - first);
      optimizer.begin_round(active);
      if (ranks.rank() < active) go_back(model, step, first + ranks.rank());
      optimizer.end_round();
    }
    note(outcome, optimizer.step(1e-2));
  }
  return outcome_of(model, optimizer, std::move(outcome));
}

void expect_same(const Outcome& found, const Outcome& expected, const std::string& what) {
  EXPECT_EQ(found.norms, expected.norms) << what;
  EXPECT_EQ(found.scales, expected.scales) << what;
  ASSERT_EQ(found.bytes.size(), expected.bytes.size()) << what;
  EXPECT_EQ(std::memcmp(found.bytes.data(), expected.bytes.data(), found.bytes.size()), 0) << what;
}

TEST(AdamWRanks, AnyNumberOfRanksGivesTheBitsOfOneProcess) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const int micro_batches : {1, 4, 7}) {
      const Outcome expected = train_alone(dtype, micro_batches);
      EXPECT_THAT(expected.scales, ::testing::Contains(::testing::Lt(1.0)));  // it was clipped
      for (const int size : {2, 3, 4}) {
        for (const int members : {1, 2, size}) {
          if (size % members != 0) continue;
          const bool gradients = members == size;
          run_ranks(size, [&](Communicator& ranks) {
            expect_same(train_as(ranks, dtype, micro_batches, {members, gradients}), expected,
                        fmt::format("rank {} of {}, {} members, {} micro-batches", ranks.rank(),
                                    size, members, micro_batches));
          });
        }
      }
    }
  }
}

// Pieces that cut parameters and hold several, and pieces that hold whole blocks.
TEST(AdamWRanks, AStateOnTheHostGivesTheBitsOfAResidentOne) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const int micro_batches : {1, 3}) {
      const Outcome expected = train_alone(dtype, micro_batches);
      for (const Offload offload : {Offload::kMoments, Offload::kAll}) {
        for (const std::int64_t elements : {5 * kUpdateBlock, kStreamedElements}) {
          const ShardOptions streamed = {.offload = offload, .streamed_elements = elements};
          const std::string what = fmt::format("{} in pieces of {}, {} micro-batches",
                                               offload_name(offload), elements, micro_batches);
          expect_same(train_alone(dtype, micro_batches, streamed), expected, what);
          for (const int members : {1, 3}) {
            ShardOptions shard = streamed;
            shard.members = members;
            shard.gradients = members > 1;
            run_ranks(3, [&](Communicator& ranks) {
              expect_same(train_as(ranks, dtype, micro_batches, shard), expected,
                          fmt::format("{}, {} members", what, members));
            });
          }
        }
      }
    }
  }
}

TEST(AdamWRanks, AMemberHoldsItsPartOfMastersAndMoments) {
  CausalLm whole = random_model(at::kBFloat16);
  const std::unique_ptr<Communicator> one = alone();
  const AdamW reference(whole, {}, *one);
  std::int64_t all = 0;
  for (const ParameterBlock& block : whole.parameters().blocks())
    all += block.first_moments.numel();
  std::mutex mutex;
  std::int64_t held = 0;
  run_ranks(3, [&](Communicator& ranks) {
    CausalLm model = random_model(at::kBFloat16);
    const AdamW optimizer(model, {}, ranks, {.members = 3});
    const std::lock_guard lock(mutex);
    for (const ParameterBlock& block : model.parameters().blocks()) {
      if (!block.first_moments.defined()) continue;
      EXPECT_EQ(block.first_moments.numel(), block.masters.numel());
      EXPECT_LE(block.first_moments.numel(), all / 3 + kPieceElements);
      held += block.first_moments.numel();
    }
  });
  EXPECT_EQ(held, all);  // each element once
}

// What a rank holds of the layers' values, in elements.
std::int64_t held_of(const CausalLm& model) {
  std::int64_t held = 0;
  for (const ParameterBlock& block : model.parameters().blocks()) {
    if (block.layer)
      held += static_cast<std::int64_t>(block.values.storage().nbytes()) /
              static_cast<std::int64_t>(block.values.element_size());
  }
  return held;
}

TEST(WeightShards, ALayerIsThereWhileAPassUsesIt) {
  run_ranks(3, [&](Communicator& ranks) {
    CausalLm model = random_model(at::kFloat);
    const CausalLm same = random_model(at::kFloat);
    const std::int64_t whole = held_of(model);
    Teams teams(ranks, 3);
    WeightShards shards(model.parameters(), teams);
    shards.divide();
    EXPECT_EQ(held_of(model), 0);
    const auto equal = [&](std::size_t layer) {
      const std::string name = fmt::format("layers.{}.gate_up", layer);
      return model.parameters().at(name).value.equal(same.parameters().at(name).value);
    };
    // One rank reads both layers, one fails after the first, one has nothing to do.
    const auto work = [&] {
      for (std::size_t layer = 0; layer < 2 && ranks.rank() < 2; ++layer) {
        const LayerInUse here(&shards, layer, Direction::kUp);
        EXPECT_TRUE(equal(layer));
        EXPECT_LE(held_of(model), whole / 2 + 3 * 3 * kPieceElements);
        if (ranks.rank() == 1) throw RunError("failed");
      }
    };
    if (ranks.rank() == 1) {
      EXPECT_THROW(shards.make_passes(1, work), RunError);
    } else {
      shards.make_passes(1, work);
    }
    EXPECT_EQ(held_of(model), 0);
    std::vector<std::size_t> left;
    shards.begin_down([&](std::size_t layer) { left.push_back(layer); });
    if (ranks.rank() == 0) {
      const LayerInUse here(&shards, 1, Direction::kDown);
      const LayerInUse again(&shards, 1, Direction::kUp);  // recomputed: it is there
      EXPECT_TRUE(equal(1));
    }
    shards.end_down();
    EXPECT_EQ(left, (std::vector<std::size_t>{1, 0}));
    shards.gather();
    for (const Parameter& parameter : model.parameters())
      EXPECT_TRUE(parameter.value.equal(same.parameters().at(parameter.name()).value));
  });
}

// A value that is not finite on one rank stops all of them before a weight changes.
TEST(AdamWRanks, AGradientThatIsNotFiniteIsNamedOnEveryRank) {
  run_ranks(2, [](Communicator& ranks) {
    CausalLm model = random_model(at::kFloat);
    AdamW optimizer(model, {}, ranks, {.members = 2});
    optimizer.begin_round(2);
    go_back(model, 0, ranks.rank());
    if (ranks.rank() == 1) {
      // The last parameter of the head's block, which is sent at the end of the round.
      model.parameters().at("final_norm").value.mutable_grad()[3] = INFINITY;
    }
    optimizer.end_round();
    const at::Tensor before = model.parameters().at("final_norm").value.detach().clone();
    const UpdateReport report = optimizer.step(1e-2);
    EXPECT_FALSE(report.applied);
    EXPECT_EQ(report.culprit, "final_norm");
    EXPECT_TRUE(model.parameters().at("final_norm").value.equal(before));
    EXPECT_EQ(optimizer.steps(), 0);
  });
}

TEST(AdamWRanks, UnequalNodesAreRefused) {
  EXPECT_THROW(run_ranks(3,
                         [](Communicator& ranks) {
                           CausalLm model = random_model(at::kFloat);
                           AdamW(model, {}, ranks, {.members = 2});
                         }),
               InputError);
}

}  // namespace
}  // namespace antisd::inline optim
