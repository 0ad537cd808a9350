#include "optim/adamw.h"

#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing.h"
#include "io/safetensors.h"
#include "model/architecture.h"
#include "model/weights.h"

namespace antisd::inline optim {
namespace {

ModelShape tiny_shape(std::int64_t scale = 1) {
  ModelShape shape;
  shape.architecture = find_architecture("llama");
  shape.vocabulary = 5 * scale;
  shape.hidden = 4 * scale;
  shape.intermediate = 3 * scale;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.head_dim = 2;
  shape.max_positions = 8;
  shape.tied_head = true;
  shape.layers.resize(1);
  return shape;
}

using Tensors = std::map<std::string, at::Tensor>;

Tensors read_tensors(const std::filesystem::path& path) {
  Tensors tensors;
  const SafetensorsFile file(path);
  for (const SafetensorsTensor& tensor : file.tensors()) {
    at::Tensor copy = at::empty(tensor.shape, at::kFloat);
    std::memcpy(copy.mutable_data_ptr(), tensor.data.data(), tensor.data.size());
    tensors[tensor.name] = copy;
  }
  return tensors;
}

void set_weights(CausalLm& model, const Tensors& values, const std::string& prefix) {
  const at::NoGradGuard no_grad;
  for (Parameter& parameter : model.parameters())
    parameter.value.copy_(values.at(prefix + parameter.name()));
}

// Sets gradients as a backward pass would.
void set_gradients(CausalLm& model, const Tensors& values, const std::string& prefix,
                   double scale = 1) {
  for (Parameter& parameter : model.parameters()) {
    parameter.value.mutable_grad() =
        (values.at(prefix + parameter.name()) * scale).to(parameter.value.scalar_type());
  }
}

std::vector<at::Tensor> copy_of(const CausalLm& model) {
  std::vector<at::Tensor> copies;
  for (const Parameter& p : model.parameters()) {
    for (const at::Tensor* tensor : {&p.value, &p.first_moment, &p.second_moment, &p.master}) {
      if (tensor->defined()) copies.push_back(tensor->detach().clone());
    }
  }
  return copies;
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(a[i].const_data_ptr(), b[i].const_data_ptr(), a[i].nbytes()) != 0) return false;
  }
  return true;
}

constexpr AdamWOptions kRecorded = {.beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1};

class AdamWTest : public ::testing::Test {
 protected:
  const Tensors recorded_ = read_tensors(testing::fixture("optim/adamw.safetensors"));
  const std::unique_ptr<Communicator> alone_ = alone();

  std::string gradient(int step) const { return fmt::format("gradient.{}.", step); }
};

// torch.optim.AdamW after clip_grad_norm_, in double precision.
TEST_F(AdamWTest, DoesWhatTorchDoes) {
  CausalLm model(tiny_shape(), at::kCPU, at::kFloat);
  set_weights(model, recorded_, "initial.");
  AdamW optimizer(model, kRecorded, *alone_);
  const at::Tensor& norms = recorded_.at("norms");
  int clipped = 0;
  for (int step = 0; step < norms.size(0); ++step) {
    set_gradients(model, recorded_, gradient(step));
    const auto norm = norms[step].item<double>();
    const UpdateReport report = optimizer.step(recorded_.at("rates")[step].item<double>());
    EXPECT_TRUE(report.applied);
    EXPECT_NEAR(report.grad_norm, norm, 1e-6 * norm);
    EXPECT_NEAR(report.clip_scale, std::min(1.0, 1.0 / (norm + 1e-6)), 1e-6);
    clipped += report.clip_scale < 1;
    for (const Parameter& parameter : model.parameters()) {
      const at::Tensor& after = recorded_.at(fmt::format("after.{}.{}", step, parameter.name()));
      // Weights are near 1 to 3 and change by up to 1e-2; an fp32 rounding error is 2e-7 of them.
      EXPECT_LT((parameter.value - after).abs().max().item<double>(), 1e-6) << parameter.name();
    }
  }
  EXPECT_EQ(clipped, 3);
  EXPECT_EQ(optimizer.steps(), 6);
  for (const Parameter& p : model.parameters()) {
    EXPECT_TRUE(p.first_moment.allclose(recorded_.at("first." + p.name()), 1e-5, 1e-9));
    EXPECT_TRUE(p.second_moment.allclose(recorded_.at("second." + p.name()), 1e-5, 1e-9));
    EXPECT_FALSE(p.master.defined());
  }
}

// A model in bf16 and the same weights in fp32, each with an optimizer.
struct Twins {
  CausalLm small{tiny_shape(), at::kCPU, at::kBFloat16}, full{tiny_shape(), at::kCPU, at::kFloat};
  std::optional<AdamW> small_optimizer, full_optimizer;

  Twins(const Tensors& weights, Communicator& processes) {
    set_weights(small, weights, "initial.");
    {
      const at::NoGradGuard no_grad;
      for (Parameter& parameter : full.parameters())
        parameter.value.copy_(small.parameters().at(parameter.name()).value);
    }
    small_optimizer.emplace(small, kRecorded, processes);
    full_optimizer.emplace(full, kRecorded, processes);
  }

  // Adds the bf16 model's gradients to the fp32 model's.
  void pass_gradients_on() {
    for (Parameter& parameter : full.parameters()) {
      at::Tensor& sum = parameter.value.mutable_grad();
      const at::Tensor gradient =
          small.parameters().at(parameter.name()).value.grad().to(at::kFloat);
      sum = sum.defined() ? sum + gradient : gradient;
    }
  }

  void expect_same_weights() const {
    for (const Parameter& narrow : small.parameters()) {
      EXPECT_TRUE(narrow.master.equal(full.parameters().at(narrow.name()).value));
      EXPECT_TRUE(narrow.value.equal(narrow.master.to(at::kBFloat16)));
    }
  }
};

TEST_F(AdamWTest, MastersAreWhatFp32WeightsWouldBe) {
  Twins twins(recorded_, *alone_);
  for (int step = 0; step < 6; ++step) {
    set_gradients(twins.small, recorded_, gradient(step));
    twins.pass_gradients_on();
    EXPECT_EQ(twins.small_optimizer->step(1e-3).grad_norm,
              twins.full_optimizer->step(1e-3).grad_norm);
  }
  twins.expect_same_weights();
}

TEST_F(AdamWTest, MicroBatchesAddUpInFp32) {
  Twins twins(recorded_, *alone_);
  for (int step = 0; step < 3; ++step) {
    for (int part = 0; part < 3; ++part) {
      twins.small_optimizer->begin_round(1);
      set_gradients(twins.small, recorded_, gradient(step + part));
      twins.pass_gradients_on();
      twins.small_optimizer->end_round();
    }
    twins.small_optimizer->step(1e-3);
    twins.full_optimizer->step(1e-3);
  }
  twins.expect_same_weights();
}

// fp16's gradient scale is a power of two, so removing it does not round.
TEST_F(AdamWTest, TheScaleOfTheGradientsIsTakenOut) {
  CausalLm plain(tiny_shape(), at::kCPU, at::kFloat), scaled(tiny_shape(), at::kCPU, at::kFloat);
  set_weights(plain, recorded_, "initial.");
  set_weights(scaled, recorded_, "initial.");
  AdamW plain_optimizer(plain, kRecorded, *alone_), scaled_optimizer(scaled, kRecorded, *alone_);
  for (int step = 0; step < 6; ++step) {
    const double scale = gradient_scale(at::kHalf, 1000 << step);
    set_gradients(plain, recorded_, gradient(step));
    set_gradients(scaled, recorded_, gradient(step), scale);
    const UpdateReport expected = plain_optimizer.step(1e-3);
    const UpdateReport report = scaled_optimizer.step(1e-3, scale);
    EXPECT_EQ(report.grad_norm, expected.grad_norm);
    EXPECT_EQ(report.clip_scale, expected.clip_scale);
  }
  EXPECT_TRUE(same_bits(copy_of(plain), copy_of(scaled)));
}

TEST(GradientScale, IsThePowerOfTwoNextToTheTokensInFp16Alone) {
  EXPECT_EQ(gradient_scale(at::kHalf, 1), 1);
  EXPECT_EQ(gradient_scale(at::kHalf, 16'384), 16'384);
  EXPECT_EQ(gradient_scale(at::kHalf, 16'383), 8'192);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    EXPECT_EQ(gradient_scale(dtype, 16'384), 1);
}

// Updates far below a bf16 weight's last bit still add up.
TEST_F(AdamWTest, SmallStepsAreNotLostInBf16) {
  CausalLm model(tiny_shape(), at::kCPU, at::kBFloat16);
  set_weights(model, recorded_, "initial.");
  AdamW optimizer(model, {.weight_decay = 0}, *alone_);
  const at::Tensor before = model.parameters().at("embedding").value.detach().to(at::kFloat);
  for (int step = 0; step < 300; ++step) {
    set_gradients(model, recorded_, gradient(0));
    optimizer.step(1e-4);
  }
  const at::Tensor expected = before - 0.03 * recorded_.at("gradient.0.embedding").sign();
  EXPECT_LT((model.parameters().at("embedding").value.to(at::kFloat) - expected)
                .abs()
                .max()
                .item<double>(),
            0.01);  // half of the last bit of a bf16 near 2
}

TEST_F(AdamWTest, TakingTheOnlyGradientsChangesNothing) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto after_step = [&](bool take) {
      CausalLm model(tiny_shape(), at::kCPU, dtype);
      set_weights(model, recorded_, "initial.");
      AdamW optimizer(model, kRecorded, *alone_);
      if (take) optimizer.begin_round(1);
      set_gradients(model, recorded_, gradient(1));
      if (take) optimizer.end_round();
      optimizer.step(1e-3);
      return copy_of(model);
    };
    EXPECT_TRUE(same_bits(after_step(true), after_step(false)));
  }
}

TEST_F(AdamWTest, BackwardPassesOfFp32WeightsAddUpByThemselves) {
  CausalLm model(tiny_shape(), at::kCPU, at::kFloat);
  set_weights(model, recorded_, "initial.");
  AdamW optimizer(model, kRecorded, *alone_);
  for (int part = 0; part < 2; ++part) {
    optimizer.begin_round(1);
    (model.parameters().at("embedding").value.square().sum() * 0.5).backward();
    optimizer.end_round();
  }
  const double norm = recorded_.at("initial.embedding").norm().item<double>();
  EXPECT_NEAR(optimizer.step(1e-3).grad_norm, 2 * norm, 1e-5);
}

TEST_F(AdamWTest, AGradientThatIsNotFiniteChangesNothing) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    CausalLm model(tiny_shape(), at::kCPU, at::kFloat);
    set_weights(model, recorded_, "initial.");
    AdamW optimizer(model, kRecorded, *alone_);
    set_gradients(model, recorded_, gradient(0));
    optimizer.step(1e-3);
    const auto before = copy_of(model);
    set_gradients(model, recorded_, gradient(1));
    const Parameter& spoilt = model.parameters().at("layers.0.gate_up");
    spoilt.value.mutable_grad()[3][2] = bad;
    const UpdateReport report = optimizer.step(1e-3);
    EXPECT_FALSE(report.applied);
    EXPECT_FALSE(std::isfinite(report.grad_norm));
    EXPECT_EQ(report.culprit, spoilt.name());
    EXPECT_EQ(optimizer.steps(), 1);
    EXPECT_TRUE(same_bits(copy_of(model), before));
    EXPECT_FALSE(spoilt.value.grad().defined());
  }
}

TEST_F(AdamWTest, AParameterWithoutAGradientStays) {
  CausalLm model(tiny_shape(), at::kCPU, at::kFloat);
  set_weights(model, recorded_, "initial.");
  AdamW optimizer(model, kRecorded, *alone_);
  set_gradients(model, recorded_, gradient(0));
  model.parameters().at("layers.0.qkv").value.mutable_grad().reset();
  optimizer.step(1e-2);
  for (const Parameter& parameter : model.parameters()) {
    EXPECT_EQ(parameter.value.equal(recorded_.at("initial." + parameter.name())),
              parameter.name() == "layers.0.qkv");
  }
  EXPECT_EQ(optimizer.step(1e-2).grad_norm, 0);  // none at all
}

TEST_F(AdamWTest, RestoredMastersAreTheWeights) {
  CausalLm model(tiny_shape(), at::kCPU, at::kBFloat16);
  set_weights(model, recorded_, "initial.");
  AdamW optimizer(model, kRecorded, *alone_);
  set_gradients(model, recorded_, gradient(0));
  for (Parameter& parameter : model.parameters())
    parameter.master.copy_(recorded_.at("after.3." + parameter.name()));
  optimizer.restore(7);
  EXPECT_EQ(optimizer.steps(), 7);
  for (const Parameter& parameter : model.parameters()) {
    const at::Tensor& expected = recorded_.at("after.3." + parameter.name());
    EXPECT_TRUE(parameter.value.equal(expected.to(at::kBFloat16)));
    EXPECT_FALSE(parameter.value.grad().defined());  // cleared with the old weights
  }
}

TEST_F(AdamWTest, ThreadsDoNotChangeABit) {
  const int threads_before = at::get_num_threads();
  std::vector<at::Tensor> reference;
  double norm = 0;
  for (const int threads : {1, 2, 3, 7}) {
    at::set_num_threads(threads);
    CausalLm model(tiny_shape(67), at::kCPU, at::kFloat);
    initialise_randomly(model, 5);
    AdamW optimizer(model, {}, *alone_);
    UpdateReport report;
    for (int step = 0; step < 2; ++step) {
      for (Parameter& parameter : model.parameters())
        parameter.value.mutable_grad() = parameter.value.detach().sin() * 10;
      report = optimizer.step(1e-3);
    }
    if (reference.empty()) {
      reference = copy_of(model);
      norm = report.grad_norm;
    }
    EXPECT_TRUE(same_bits(copy_of(model), reference)) << threads;
    EXPECT_EQ(report.grad_norm, norm) << threads;
  }
  at::set_num_threads(threads_before);
}

// A frozen parameter has no state and does not change.
TEST_F(AdamWTest, AFrozenParameterHasNoStateAndStays) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    CausalLm model(tiny_shape(), at::kCPU, dtype), whole(tiny_shape(), at::kCPU, dtype);
    set_weights(model, recorded_, "initial.");
    set_weights(whole, recorded_, "initial.");
    const auto is_frozen = [](const Parameter& p) {
      return p.name() == "layers.0.qkv" || p.spec.block == "embedding";
    };
    for (Parameter& parameter : model.parameters())
      parameter.spec.trainable = !is_frozen(parameter);
    AdamW optimizer(model, {.weight_decay = 0.1, .grad_clip = INFINITY}, *alone_);
    AdamW reference(whole, {.weight_decay = 0.1, .grad_clip = INFINITY}, *alone_);
    optimizer.begin_round(1);
    set_gradients(model, recorded_, gradient(1));  // also of those that are frozen
    set_gradients(whole, recorded_, gradient(1));
    optimizer.end_round();
    const double norm = optimizer.step(1e-2).grad_norm;
    EXPECT_LT(norm, reference.step(1e-2).grad_norm);
    EXPECT_GT(norm, 0);
    for (const Parameter& parameter : model.parameters()) {
      const bool frozen = is_frozen(parameter);
      const at::Tensor initial = recorded_.at("initial." + parameter.name()).to(dtype);
      EXPECT_EQ(parameter.value.requires_grad(), !frozen) << parameter.name();
      EXPECT_EQ(parameter.first_moment.defined(), !frozen) << parameter.name();
      EXPECT_EQ(parameter.second_moment.defined(), !frozen) << parameter.name();
      EXPECT_EQ(parameter.master.defined(), !frozen && dtype != at::kFloat) << parameter.name();
      const at::Tensor& moved = whole.parameters().at(parameter.name()).value;
      EXPECT_TRUE(parameter.value.equal(frozen ? initial : moved)) << parameter.name();
      EXPECT_FALSE(parameter.value.grad().defined());
    }
    EXPECT_FALSE(model.parameters().blocks().front().first_moments.defined());
  }
}

TEST(AdamWOptions, ComeFromTheConfiguration) {
  OptimConfig config;
  config.betas = {0.8, 0.7};
  config.grad_clip = 3;
  const AdamWOptions options = adamw_options(config);
  EXPECT_EQ(options.beta1, 0.8);
  EXPECT_EQ(options.beta2, 0.7);
  EXPECT_EQ(options.weight_decay, 0.01);
  EXPECT_EQ(options.grad_clip, 3);
}

}  // namespace
}  // namespace antisd::inline optim
