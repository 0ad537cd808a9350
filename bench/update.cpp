#ifdef ANTISD_TORCH

#include "bench/update.h"

#include <map>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/clock.h"
#include "bench/kernel_profile.h"
#include "bench/random_model.h"
#include "bench/shapes.h"
#include "dist/communicator.h"
#include "model/weights.h"
#include "ops/device.h"
#include "ops/token_scores.h"
#include "optim/adamw.h"

namespace antisd::bench {
namespace {

constexpr double kPeakFlops = 989e12;  // dense bf16 or fp16 of an H200, by its data sheet

struct UpdateOptions {
  std::string shape = "tiny";
  std::string device = "cpu", dtype = "auto";
  std::string clock = "wall";
  int sequences = 8, length = 2048, repeats = 5, threads = 0;
  bool checkpoint = false, profile = false;
  std::string work = "update";
};

}  // namespace

int run_update(const std::vector<std::string>& arguments) {
  UpdateOptions options;
  CLI::App app("time of one update", "antisd-bench update");
  app.add_option("--shape", options.shape)->capture_default_str();
  app.add_option("--device", options.device)
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--dtype", options.dtype, "auto: bf16 on a GPU")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "bf16", "fp16"}));
  app.add_option("--sequences", options.sequences)
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--length", options.length)->capture_default_str()->check(CLI::Range(2, 1 << 20));
  app.add_option("--repeats", options.repeats)->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--threads", options.threads, "0: as many as torch chooses")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_option("--clock", options.clock, "cpu: processor time, for one thread on a busy machine")
      ->capture_default_str()
      ->check(CLI::IsMember({"wall", "cpu"}));
  app.add_flag("--checkpoint", options.checkpoint, "compute each layer anew in the backward pass");
  app.add_option("--work", options.work, "forward, backward (both passes) or update (AdamW too)")
      ->capture_default_str()
      ->check(CLI::IsMember({"forward", "backward", "update"}));
  app.add_flag("--profile", options.profile, "list the kernels that take most of the time");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  if (options.threads > 0) at::set_num_threads(options.threads);
  const at::Device device(options.device);
  CausalLm model = random_model(named_shape(options.shape), device, options.dtype);
  const bool backward_too = options.work != "forward";
  const auto processes = alone();
  std::optional<AdamW> optimizer;
  if (options.work == "update") optimizer.emplace(model, AdamWOptions{}, *processes);
  if (backward_too) model.require_gradients();
  std::vector<std::vector<std::int32_t>> sequences(options.sequences);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (int i = 0; i < options.length; ++i) {
      sequences[s].push_back(
          static_cast<std::int32_t>((s * 7919 + i * 104'729) % model.shape().vocabulary));
    }
  }
  const double scale =
      gradient_scale(model.dtype(), std::int64_t{options.sequences} * options.length);
  const PackedBatch batch = pack(sequences, device, {.share = false});
  const at::Tensor targets = batch.ids.roll(-1).to(at::kInt);

  std::map<std::string, double> best;
  const auto keep = [&](const char* part, double seconds) {
    const auto [entry, is_new] = best.try_emplace(part, seconds);
    if (!is_new) entry->second = std::min(entry->second, seconds);
  };
  bool finite = true;
  const at::AutoGradMode gradients(backward_too);
  const auto step = [&](bool counts) {
    Clock clock(device, options.clock == "cpu");
    const at::Tensor hidden = model.hidden_states(batch, options.checkpoint);
    const double layers = clock.lap();
    const auto scores = token_scores(hidden, model.head(), targets, 1.0, model.shape().vocabulary);
    const double head = clock.lap();
    if (backward_too) torch::autograd::backward({-scores.logp.mean() * scale}, {});
    const double backward = clock.lap();
    if (optimizer) {
      finite = optimizer->step(/*lr=*/1e-6, scale).applied && finite;
    } else {
      for (Parameter& parameter : model.parameters())
        parameter.value.mutable_grad().reset();
    }
    const double adamw = clock.lap();
    if (!counts) return;
    keep("layers forward", layers);
    keep("head forward", head);
    if (backward_too) keep("backward", backward);
    if (optimizer) keep("clip and AdamW", adamw);
    keep("whole step", layers + head + backward + (optimizer ? adamw : 0));
  };
  for (int i = 0; i <= options.repeats; ++i)
    step(/*counts=*/i > 0);  // the first one warms up
  if (options.profile) print_kernel_profile([&] { step(false); });
  const double tokens = static_cast<double>(options.sequences) * options.length;
  const double flops = (backward_too ? 6.0 : 2.0) *
                       static_cast<double>(model.shape().active_parameter_count()) * tokens;
  fmt::print("{}: {:.0f} M parameters, {} x {} tokens, {} {}{}\n", options.shape,
             static_cast<double>(model.shape().parameter_count()) / 1e6, options.sequences,
             options.length, options.device, dtype_name(model.dtype()),
             options.checkpoint ? ", layers computed anew" : "");
  for (const auto& [part, seconds] : best)
    fmt::print("  {:<16} {:9.2f} ms\n", part, seconds * 1e3);
  fmt::print("  {:.0f} tokens/s, {:.1f} TFLOP/s", tokens / best["whole step"],
             flops / best["whole step"] / 1e12);
  if (device.is_cuda())
    fmt::print(", {:.1f} % of 989", 100 * flops / best["whole step"] / kPeakFlops);
  fmt::print("{}\n", finite ? "" : "; a GRADIENT WAS NOT FINITE");
  return 0;
}

}  // namespace antisd::bench

#endif
