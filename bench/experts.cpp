#ifdef ANTISD_TORCH

#include "ops/experts.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/benchmarks.h"
#include "bench/clock.h"
#include "bench/kernel_profile.h"
#include "bench/options.h"
#include "bench/shapes.h"
#include "core/error.h"
#include "model/causal_lm.h"
#include "ops/swiglu.h"

namespace antisd::bench {

int run_experts(const Arguments& arguments) {
  std::string shape_name = "qwen3-30b-a3b", device_name = "cpu";
  std::int64_t tokens = 16'384;
  int repeats = 10;
  bool profile = false;
  CLI::App app("a sparse layer's experts against one gated unit of equal FLOPs",
               "antisd-bench experts");
  add_model_options(app, shape_name, device_name);
  add_number(app, "--tokens", tokens, 1, 1 << 20);
  add_number(app, "--repeats", repeats, 1, 1000);
  app.add_flag("--profile", profile, "list the kernels that take most of the time");
  if (const auto status = parse(app, arguments)) return *status;
  const ModelShape shape = named_shape(shape_name);
  if (shape.experts == 0)
    throw InputError(shape_name + " has no experts", {.remedy = "use --shape qwen3-30b-a3b"});
  const at::Device device(device_name);
  const auto random = [&](std::vector<std::int64_t> sizes) {
    return (at::randn(sizes, at::TensorOptions().device(device)) * 0.02)
        .to(compute_dtype(device))
        .requires_grad_(true);
  };
  const std::int64_t width = shape.expert_intermediate;
  const ExpertWeights weights{random({shape.experts, shape.hidden}),
                              random({shape.experts, 2 * width, shape.hidden}),
                              random({shape.experts, shape.hidden, width})};
  const std::int64_t dense_width = width * shape.experts_per_token;
  const at::Tensor gate_up = random({2 * dense_width, shape.hidden}),
                   down = random({shape.hidden, dense_width}), x = random({tokens, shape.hidden});
  const auto sparse = [&] {
    return experts(x, weights, shape.experts_per_token, shape.normalise_experts);
  };
  const auto dense = [&] { return at::linear(swiglu(at::linear(x, gate_up)), down); };
  const auto backward = [](const at::Tensor& y) {
    torch::autograd::backward({y}, {at::ones_like(y)});
  };
  for (const bool train : {false, true}) {
    const at::AutoGradMode gradients(train);
    const auto run = [&](const auto& layer) {
      return 1e3 * best_time(device, /*processor_time=*/false, repeats, [&] {
               const at::Tensor y = layer();
               if (train) backward(y);
             });
    };
    const double sparse_ms = run(sparse), dense_ms = run(dense);
    fmt::print("{}: {} tokens, {:<20} experts {:.2f} ms, dense {:.2f} ms, {:.2f} x\n", shape_name,
               tokens, train ? "forward and backward" : "forward", sparse_ms, dense_ms,
               sparse_ms / dense_ms);
    if (profile) {
      print_kernel_profile([&] { run(sparse); }, 16);
    }
  }
  return 0;
}

}  // namespace antisd::bench

#endif
