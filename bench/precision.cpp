#ifdef ANTISD_TORCH

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "bench/benchmarks.h"
#include "bench/options.h"
#include "bench/shapes.h"
#include "core/error.h"
#include "core/rng.h"
#include "core/thread_pool.h"
#include "io/json.h"
#include "model/weights.h"
#include "ops/token_scores.h"

namespace antisd::bench {
namespace {

constexpr double kBar = 0.01;  // nats, of the mean |delta logp|

struct PrecisionOptions {
  std::string shape = "tiny";
  std::string device = "cuda", dtype = "auto";
  int sequences = 4, length = 256, threads = available_threads();
  double entropy = 0.9;  // nats
  std::uint64_t seed = 0;
  bool json = false;
};

using Sequences = std::vector<std::vector<std::int32_t>>;

// Random weights, rounded to bf16 so that both precisions compute with the same numbers.
CausalLm reference_model(const ModelShape& shape, std::uint64_t seed) {
  CausalLm model(shape, at::kCPU, compute_dtype(at::kCPU));
  initialise_randomly(model, seed);
  for (Parameter& parameter : model.parameters())
    parameter.value.copy_(parameter.value.to(at::kBFloat16));
  return model;
}

// The same weights on another device. The last norm's weight scales the logits, also of a tied
// head.
CausalLm scaled_copy(const CausalLm& source, at::Device device, const std::string& dtype,
                     double logit_scale) {
  CausalLm copy(source.shape(), device, compute_dtype(device, dtype));
  for (Parameter& parameter : copy.parameters()) {
    parameter.value.copy_(source.parameters().at(parameter.name()).value);
    if (parameter.name() == "final_norm") parameter.value.mul_(logit_scale);
  }
  return copy;
}

Sequences random_sequences(const PrecisionOptions& options, std::int64_t vocabulary) {
  const CounterRng rng(options.seed, RandomStream::kTask);
  Sequences sequences(static_cast<std::size_t>(options.sequences));
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (int i = 0; i < options.length; ++i) {
      sequences[s].push_back(static_cast<std::int32_t>(rng.below(
          static_cast<std::uint64_t>(vocabulary),
          {.sample = static_cast<std::uint32_t>(s), .position = static_cast<std::uint32_t>(i)})));
    }
  }
  return sequences;
}

at::Tensor hidden_of(const CausalLm& model, const Sequences& sequences) {
  return model.hidden_states(pack(sequences, model.device(), {.share = false}));
}

// The smallest of the scales 1, 1.1, 1.21, ... that brings the mean entropy of some positions below
// the target, rounded to bf16.
double find_logit_scale(const at::Tensor& hidden, const at::Tensor& head, double entropy) {
  const std::int64_t step = std::max<std::int64_t>(1, hidden.size(0) / 64);
  const at::Tensor logits = at::linear(hidden.slice(0, 0, hidden.size(0), step), head);
  for (double scale = 1; scale < 1e4; scale *= 1.1) {
    const double rounded = at::tensor(scale).to(at::kBFloat16).item<double>();
    const at::Tensor logp = (logits * rounded).log_softmax(-1);
    if ((logp.exp() * logp).sum(-1).mean().item<double>() > -entropy) return rounded;
  }
  throw RunError("no scale of the logits brings the mean entropy below the target",
                 {.remedy = "raise --entropy"});
}

// A token sampled from the reference at every position, as a rollout would be. Random tokens would
// nearly all have probability 0 under such sharp logits.
at::Tensor draw_targets(const at::Tensor& hidden, const at::Tensor& head, std::uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& rows : hidden.split(64)) {
    const at::Tensor p = at::linear(rows, head).softmax(-1);
    parts.push_back(at::multinomial(p, 1, /*replacement=*/true, generator).flatten());
  }
  return at::cat(parts).to(at::kInt);
}

TokenScoreTensors scores_of(const CausalLm& model, const at::Tensor& hidden,
                            const at::Tensor& targets) {
  const TokenScoreTensors scores =
      token_scores(hidden, model.head().weight, targets.to(model.device()), 1.0,
                   model.shape().vocabulary, Gradients::kNone);
  return {scores.logp.to(at::kCPU), scores.entropy.to(at::kCPU)};
}

Json compare(const PrecisionOptions& options) {
  const at::NoGradGuard no_grad;
  at::set_num_threads(options.threads);
  const at::Device device(options.device);
  const CausalLm flat = reference_model(named_shape(options.shape), options.seed);
  const Sequences sequences = random_sequences(options, flat.shape().vocabulary);
  const at::Tensor flat_hidden = hidden_of(flat, sequences);
  const double scale = find_logit_scale(flat_hidden, flat.head().weight, options.entropy);
  const at::Tensor reference_hidden = flat_hidden * scale;
  const at::Tensor targets = draw_targets(reference_hidden, flat.head().weight, options.seed);
  const TokenScoreTensors reference = scores_of(flat, reference_hidden, targets);

  const CausalLm model = scaled_copy(flat, device, options.dtype, scale);
  at::Tensor hidden;
  if (device.is_cuda()) {
    hidden = hidden_of(model, sequences);
  } else {
    at::set_num_threads(1);
    std::vector<at::Tensor> parts;
    for (const auto& sequence : sequences)
      parts.push_back(hidden_of(model, {sequence}));
    hidden = at::cat(parts).to(at::kBFloat16).to(at::kFloat);
  }
  const TokenScoreTensors scores = scores_of(model, hidden, targets);
  const at::Tensor difference = scores.logp - reference.logp,
                   entropy_difference = scores.entropy - reference.entropy;
  const auto mean = [](const at::Tensor& values) { return values.mean().item<double>(); };
  return {{"shape", options.shape},
          {"device", options.device},
          {"dtype", dtype_name(model.dtype())},
          {"tokens", targets.numel()},
          {"logit_scale", scale},
          {"mean_entropy", mean(reference.entropy)},
          {"mean_logp", mean(reference.logp)},
          {"mean_abs_difference", mean(difference.abs())},
          {"largest_abs_difference", difference.abs().max().item<double>()},
          {"mean_difference", mean(difference)},
          {"mean_abs_entropy_difference", mean(entropy_difference.abs())},
          {"bar", kBar}};
}

}  // namespace

int run_precision(const Arguments& arguments) {
  PrecisionOptions options;
  CLI::App app("16 bits on a GPU against fp32 on the CPU", "antisd-bench precision");
  add_model_options(app, options.shape, options.device);
  add_dtype_option(app, options.dtype);
  add_number(app, "--sequences", options.sequences, 1, 1 << 16);
  add_number(app, "--length", options.length, 1, 1 << 16);
  app.add_option("--entropy", options.entropy, "nats; the mean is brought below it")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  add_number(app, "--threads", options.threads, 1, 1024);
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_flag("--json", options.json);
  if (const auto status = parse(app, arguments)) return *status;
  const Json result = compare(options);
  if (options.json) {
    fmt::print("{}\n", result.dump());
    return 0;
  }
  const auto number = [&](const char* name) { return result[name].get<double>(); };
  fmt::print(
      "{} on {} in {}, {} tokens, logits scaled by {:.2f}: mean entropy {:.3f}, mean logp {:.3f}\n",
      options.shape, options.device, result["dtype"].get<std::string>(),
      result["tokens"].get<int>(), number("logit_scale"), number("mean_entropy"),
      number("mean_logp"));
  fmt::print("  |delta logp| mean {:.2e} (bar {}: {}), largest {:.2e}; delta logp mean {:.2e}\n",
             number("mean_abs_difference"), kBar,
             number("mean_abs_difference") < kBar ? "met" : "missed",
             number("largest_abs_difference"), number("mean_difference"));
  fmt::print("  |delta entropy| mean {:.2e}\n", number("mean_abs_entropy_difference"));
  return 0;
}

}  // namespace antisd::bench

#endif
