// For tests of checkpoints: a small training state that is a function of its step.
#pragma once

#include <cstring>
#include <memory>

#include <ATen/core/grad_mode.h>

#include "core/testing.h"
#include "dist/in_process.h"
#include "model/weights.h"
#include "run/checkpoint/checkpoint.h"

namespace antisd::testing {

struct SmallRun {
  std::filesystem::path origin;
  CausalLm model;
  AdamW optimizer;

  explicit SmallRun(const std::string& name = "qwen3_moe_mixed", at::ScalarType dtype = at::kFloat)
      : SmallRun(name, dtype, one_rank(), {}) {}
  SmallRun(const std::string& name, at::ScalarType dtype, Communicator& ranks, ShardOptions shard)
      : origin(fixture("model") / name),
        model(load_model(origin, at::kCPU, dtype)),
        optimizer(model, {}, ranks, shard) {}

  // A training step without a batch: the gradients depend on the weights.
  void train_step() {
    for (Parameter& parameter : model.parameters())
      parameter.value.mutable_grad() = parameter.value.detach().sin() + 0.01;
    optimizer.step(1e-2);
  }

  // With several ranks: of them only rank 0 has a gradient.
  void train_step(Communicator& ranks) {
    if (ranks.size() == 1) return train_step();
    optimizer.begin_round(1);
    if (ranks.rank() == 0) {
      for (Parameter& parameter : model.parameters())
        parameter.value.mutable_grad() = parameter.value.detach().sin() + 0.01;
    }
    optimizer.end_round();
    optimizer.step(1e-2);
  }

  Json state() const { return {{"step", optimizer.steps()}, {"gate", {{"h_warm", 0.1 + 0.2}}}}; }

  std::filesystem::path save(const std::filesystem::path& checkpoints) const {
    return save_checkpoint(checkpoints, optimizer.steps(), {model, optimizer, origin}, state());
  }

  // All bytes that training depends on.
  std::string bytes() const {
    std::string all = std::to_string(optimizer.steps());
    const auto add = [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      all.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    };
    for (const Parameter& parameter : model.parameters()) {
      add(parameter.value);
      add(parameter.first_moment);
      add(parameter.second_moment);
      add(parameter.master);
    }
    return all;
  }
};

}  // namespace antisd::testing
