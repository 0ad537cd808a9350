#ifdef ANTISD_TORCH

#include "bench/experts.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/clock.h"
#include "bench/kernel_profile.h"
#include "bench/shapes.h"
#include "model/causal_lm.h"
#include "ops/experts.h"
#include "ops/swiglu.h"

namespace antisd::bench {
int run_experts(const std::vector<std::string>& arguments) {
  std::string shape_name = "qwen3-30b-a3b", device_name = "cpu";
  std::int64_t tokens = 16'384;
  int repeats = 10;
  bool profile = false;
  CLI::App app("a sparse layer's experts against one gated unit of equal FLOPs",
               "antisd-bench experts");
  app.add_option("--shape", shape_name)->capture_default_str();
  app.add_option("--device", device_name)->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--tokens", tokens)->capture_default_str()->check(CLI::Range(1, 1 << 20));
  app.add_option("--repeats", repeats)->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_flag("--profile", profile, "list the kernels that take most of the time");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const ModelShape shape = named_shape(shape_name);
  if (shape.experts == 0) {
    fmt::print(stderr, "antisd-bench: {} has no experts\n", shape_name);
    return 2;
  }
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
