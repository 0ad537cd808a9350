#ifdef ANTISD_TORCH

#include "ops/experts.h"

#include <functional>
#include <optional>

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
#include "ops/device.h"
#include "ops/swiglu.h"

namespace antisd::bench {
namespace {

struct ExpertOptions {
  std::string shape = "qwen3-30b-a3b", device = "cpu", dtype = "auto", grouped = "auto";
  std::int64_t tokens = 16'384;
  int repeats = 10;
  bool profile = false;
};

struct ExpertBench {
  const ExpertOptions& options;
  ModelShape shape;
  at::Device device;
  GroupedCode code;

  at::Tensor random(std::vector<std::int64_t> sizes) const {
    return (at::randn(sizes, at::TensorOptions().device(device)) * 0.02)
        .to(compute_dtype(device, options.dtype))
        .requires_grad_(true);
  }

  // Milliseconds of one of several calls in a row.
  double time(int calls, const std::function<void()>& work) const {
    return 1e3 / calls * best_time(device, /*processor_time=*/false, options.repeats, [&] {
             for (int i = 0; i < calls; ++i)
               work();
           });
  }
};

void bench_layer(const ExpertBench& bench) {
  const ModelShape& shape = bench.shape;
  const std::int64_t width = shape.expert_intermediate;
  const ExpertWeights weights{bench.random({shape.experts, shape.hidden}),
                              bench.random({shape.experts, 2 * width, shape.hidden}),
                              bench.random({shape.experts, shape.hidden, width})};
  const std::int64_t dense_width = width * shape.experts_per_token;
  const at::Tensor gate_up = bench.random({2 * dense_width, shape.hidden}),
                   down = bench.random({shape.hidden, dense_width}),
                   x = bench.random({bench.options.tokens, shape.hidden});
  const auto sparse = [&] {
    return experts(x, weights, shape.experts_per_token, shape.normalise_experts, bench.code);
  };
  const auto dense = [&] { return at::linear(swiglu(at::linear(x, gate_up)), down); };
  for (const bool train : {false, true}) {
    const at::AutoGradMode gradients(train);
    const auto run = [&](const auto& layer) {
      return bench.time(1, [&] {
        const at::Tensor y = layer();
        if (train) torch::autograd::backward({y}, {at::ones_like(y)});
      });
    };
    const double sparse_ms = run(sparse), dense_ms = run(dense);
    fmt::print("{}: {} tokens, {:<20} experts {:.2f} ms, dense {:.2f} ms, {:.2f} x\n",
               bench.options.shape, bench.options.tokens,
               train ? "forward and backward" : "forward", sparse_ms, dense_ms,
               sparse_ms / dense_ms);
    if (bench.options.profile) print_kernel_profile([&] { run(sparse); }, 16);
  }
}

// One product and its two gradients, each alone. Bytes: every operand and result once, of the
// weights those of experts that have rows.
void bench_product(const ExpertBench& bench, const std::string& name, std::int64_t in,
                   std::int64_t out) {
  const std::int64_t rows = bench.options.tokens * bench.shape.experts_per_token;
  const at::Tensor chosen = at::randint(bench.shape.experts, {rows}, at::kLong);
  const at::Tensor counts = chosen.bincount({}, bench.shape.experts);
  const at::Tensor ends = counts.cumsum(0).to(at::kInt).to(bench.device);
  const std::int64_t used = counts.count_nonzero().item<std::int64_t>();
  const at::Tensor x = bench.random({rows, in}), w = bench.random({bench.shape.experts, out, in});
  const at::Tensor dy = bench.random({rows, out}).detach();
  const at::Tensor y = grouped_linear(x, w, ends, bench.code);
  const double flop = 2.0 * static_cast<double>(rows * in) * static_cast<double>(out);
  const std::optional<double> peak = peak_flops(bench.device);
  const auto print = [&](const char* part, std::int64_t weights, const std::function<void()>& run) {
    const double seconds = 1e-3 * bench.time(10, run);
    const std::int64_t elements = rows * (in + out) + weights * in * out;
    fmt::print("{:<8} {:>8} rows, {:<8} {:8.3f} ms {:7.1f} TFLOP/s{} {:6.2f} TB/s\n", name, rows,
               part, 1e3 * seconds, flop / seconds / 1e12,
               peak ? fmt::format(" {:5.1f} %", 100 * flop / seconds / *peak) : "",
               static_cast<double>(elements * w.element_size()) / seconds / 1e12);
  };
  print("y", used, [&] {
    const at::NoGradGuard no_grad;
    grouped_linear(x, w, ends, bench.code);
  });
  print("dx", used, [&] { torch::autograd::grad({y}, {x}, {dy}, /*retain_graph=*/true); });
  // All of dw is written.
  print("dw", bench.shape.experts,
        [&] { torch::autograd::grad({y}, {w}, {dy}, /*retain_graph=*/true); });
}

}  // namespace

int run_experts(const Arguments& arguments) {
  ExpertOptions options;
  CLI::App app("a sparse layer's experts against one gated unit of equal FLOPs, and its products",
               "antisd-bench experts");
  add_model_options(app, options.shape, options.device);
  add_dtype_option(app, options.dtype);
  add_choice(app, "--grouped", options.grouped, {"auto", "torch", "own"},
             "the GPU code of the products; auto: as in training");
  add_number(app, "--tokens", options.tokens, 1, 1 << 20);
  add_number(app, "--repeats", options.repeats, 1, 1000);
  app.add_flag("--profile", options.profile, "list the kernels that take most of the time");
  if (const auto status = parse(app, arguments)) return *status;
  const ExpertBench bench{options, named_shape(options.shape), at::Device(options.device),
                          options.grouped == "torch" ? GroupedCode::kTorch
                          : options.grouped == "own" ? GroupedCode::kOwn
                                                     : GroupedCode::kChosen};
  if (bench.shape.experts == 0)
    throw InputError(options.shape + " has no experts", {.remedy = "use --shape qwen3-30b-a3b"});
  bench_layer(bench);
  const std::int64_t width = bench.shape.expert_intermediate;
  bench_product(bench, "gate_up", bench.shape.hidden, 2 * width);
  bench_product(bench, "down", width, bench.shape.hidden);
  return 0;
}

}  // namespace antisd::bench

#endif
