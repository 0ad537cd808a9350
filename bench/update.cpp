#ifdef ANTISD_TORCH

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/benchmarks.h"
#include "bench/clock.h"
#include "bench/kernel_profile.h"
#include "bench/memory_cap.h"
#include "bench/options.h"
#include "bench/random_model.h"
#include "bench/recompute.h"
#include "bench/shapes.h"
#include "bench/workload.h"
#include "dist/group/process_group.h"
#include "model/weights.h"
#include "ops/token_scores.h"
#include "optim/adamw.h"
#include "trainer/memory_peaks.h"

namespace antisd::bench {
namespace {

constexpr double kPeakFlops = 989e12;  // dense bf16 or fp16 of an H200, by its data sheet

struct UpdateOptions {
  std::string shape = "tiny";
  std::string device = "cpu", dtype = "auto";
  std::string clock = "wall";
  int sequences = 8, length = 2048, cap = 0, repeats = 5, threads = 0;
  std::string lengths;  // long-tail or a file; empty: all have `length`
  bool profile = false;
  std::string recompute = "false";
  std::string work = "update";
  std::string exchange = "none", offload = "none";
  double memory_gib = 0;

  bool backward_too() const { return work != "forward"; }
};

struct Times {
  std::map<std::string, double> best;  // seconds by part
  bool finite = true;                  // all gradients
  std::size_t recomputed = 0;          // layers
  double planned = 0, measured = 0;    // GiB: the peak of an update on a GPU
};

// A group of one process, which sends to itself by NCCL or Gloo.
std::unique_ptr<ProcessGroup> join_alone(at::Device device) {
  const Place place{
      .host = "127.0.0.1", .port = 29'517, .meeting = "bench", .source = "a benchmark"};
  return join_group(place, {.backend = device.is_cuda() ? GpuBackend::kNccl : GpuBackend::kAuto,
                            .identity = "",
                            .address = "127.0.0.1",
                            .on_loss = {}});
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<std::int64_t> lengths_of(const UpdateOptions& options) {
  if (options.lengths.empty())
    return std::vector<std::int64_t>(static_cast<std::size_t>(options.sequences), options.length);
  if (options.lengths != "long-tail") return read_lengths(options.lengths);
  return long_tail(options.sequences, options.length,
                   options.cap > 0 ? options.cap : 4 * std::int64_t{options.length});
}

std::int64_t sum_of(const std::vector<std::int64_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

// All sequences are one micro-batch.
MemoryPlan plan_of(const UpdateOptions& options, const CausalLm& model,
                   const std::vector<std::int64_t>& lengths) {
  RunConfig config;
  config.optim.offload = options.offload;
  config.rollout.prompts_per_step = 1;
  config.rollout.group_size = std::ssize(lengths);
  config.rollout.max_sequence_tokens = std::ranges::max(lengths);
  config.train.micro_batch_tokens = sum_of(lengths);
  return planned_memory(options.recompute, config, model);
}

Times measure(const UpdateOptions& options, CausalLm& model,
              const std::vector<std::int64_t>& lengths) {
  Times times;
  const at::Device device = model.device();
  const MemoryPlan plan = plan_of(options, model, lengths);  // before the optimizer takes memory
  const bool exchanges = options.exchange != "none";
  const std::unique_ptr<Communicator> ranks = exchanges ? join_alone(device) : alone();
  std::optional<AdamW> optimizer;
  if (options.work == "update") {
    optimizer.emplace(model, AdamWOptions{}, *ranks,
                      ShardOptions{.gradients = true,
                                   .weights = options.exchange == "weights",
                                   .even_alone = exchanges,
                                   .offload = *offload_of_name(options.offload)});
  }
  if (options.backward_too()) model.parameters().require_gradients();
  std::vector<std::vector<std::int32_t>> sequences(lengths.size());
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::int64_t i = 0; i < lengths[s]; ++i) {
      sequences[s].push_back(made_up_id(static_cast<std::int64_t>(s), i, model.shape().vocabulary));
    }
  }
  const double scale = gradient_scale(model.dtype(), sum_of(lengths));
  const PackedBatch batch = pack(sequences, device, {.share = false});
  const at::Tensor targets = batch.ids.roll(-1).to(at::kInt);

  const auto keep = [&](const char* part, double seconds) {
    const auto [entry, is_new] = times.best.try_emplace(part, seconds);
    if (!is_new) entry->second = std::min(entry->second, seconds);
  };
  const at::AutoGradMode gradients(options.backward_too());
  const Pass pass = options.backward_too() ? Pass::kRecomputed : Pass::kInference;
  times.recomputed = options.backward_too() ? plan.layers - plan.kept_layers : 0;
  const auto step = [&](bool counts) {
    ranks->take_waits();
    Clock clock(device, options.clock == "cpu");
    at::Tensor hidden;
    const auto forward = [&] { hidden = model.hidden_states(batch, pass, plan.kept_layers); };
    exchanges ? optimizer->make_passes(1, forward) : forward();
    const double layers = clock.lap();
    const auto scores = token_scores(hidden, model.head().weight, targets, 1.0,
                                     model.shape().vocabulary, gradients_of(pass));
    const double head = clock.lap();
    if (exchanges) optimizer->begin_round(1);
    if (options.backward_too()) torch::autograd::backward({-scores.logp.mean() * scale}, {});
    if (exchanges) optimizer->end_round();
    const double backward = clock.lap();
    if (optimizer) {
      times.finite = optimizer->step(/*lr=*/1e-6, scale).applied && times.finite;
    } else {
      model.parameters().drop_gradients();
    }
    const double adamw = clock.lap();
    if (!counts) return;
    keep("layers forward", layers);
    keep("head forward", head);
    if (options.backward_too()) keep("backward", backward);
    if (optimizer) keep("clip and AdamW", adamw);
    keep("whole step", layers + head + backward + (optimizer ? adamw : 0));
    // On a GPU the host waits for what was computed before the exchange too.
    if (exchanges && device.is_cpu()) keep("waited for the exchange", sum_of(ranks->take_waits()));
  };
  for (int i = 0; i <= options.repeats; ++i)
    step(/*counts=*/i > 0);  // the first one is the warm-up
  if (optimizer && !exchanges && device.is_cuda()) {
    times.planned = (plan.total(MemoryTime::kAlways) + plan.total(MemoryTime::kUpdate)) / (1 << 30);
    times.measured = MemoryPeaks(device).most();
  }
  if (options.profile) print_kernel_profile([&] { step(false); });
  return times;
}

void print(const UpdateOptions& options, const CausalLm& model, const Times& times,
           const std::vector<std::int64_t>& lengths) {
  const auto tokens = static_cast<double>(sum_of(lengths));
  const double whole = times.best.at("whole step");
  const double passes = options.backward_too() ? 3 : 1;  // in units of a forward pass
  const double flops =
      2 * passes * static_cast<double>(model.shape().active_parameter_count()) * tokens;
  double attention = 0;
  for (const std::int64_t length : lengths)
    attention += passes * attention_flops(model.shape(), 0, length);
  const std::string sizes =
      options.lengths.empty()
          ? fmt::format("{} x {} tokens", options.sequences, options.length)
          : fmt::format("{} sequences of {} to {} tokens, {:.0f} on average", lengths.size(),
                        std::ranges::min(lengths), std::ranges::max(lengths),
                        tokens / static_cast<double>(lengths.size()));
  fmt::print("{}: {:.0f} M parameters, {}, {} {}{}\n", options.shape,
             static_cast<double>(model.shape().parameter_count()) / 1e6, sizes, options.device,
             dtype_name(model.dtype()),
             times.recomputed > 0 ? fmt::format(", {} layers recomputed", times.recomputed) : "");
  for (const auto& [part, seconds] : times.best)
    fmt::print("  {:<24} {:9.2f} ms\n", part, seconds * 1e3);
  if (times.measured > 0)
    fmt::print("  memory {:.2f} GiB planned, {:.2f} measured\n", times.planned, times.measured);
  fmt::print("  {:.0f} tokens/s, {:.1f} TFLOP/s", tokens / whole, flops / whole / 1e12);
  if (model.device().is_cuda()) fmt::print(", {:.1f} % of 989", 100 * flops / whole / kPeakFlops);
  fmt::print("; with attention {:.1f} TFLOP/s", (flops + attention) / whole / 1e12);
  if (model.device().is_cuda())
    fmt::print(", {:.1f} %", 100 * (flops + attention) / whole / kPeakFlops);
  fmt::print("{}\n", times.finite ? "" : "; a GRADIENT WAS NOT FINITE");
  fmt::print("  {:.3g} TFLOP by parameters ({}ND), {:.3g} of attention\n", flops / 1e12, 2 * passes,
             attention / 1e12);
}

}  // namespace

int run_update(const Arguments& arguments) {
  UpdateOptions options;
  CLI::App app("time of one update", "antisd-bench update");
  add_model_options(app, options.shape, options.device);
  add_dtype_option(app, options.dtype);
  add_number(app, "--sequences", options.sequences, 1, 1 << 20);
  add_number(app, "--length", options.length, 2, 1 << 20, "of a sequence, or the mean");
  app.add_option("--lengths", options.lengths,
                 "long-tail: many short sequences and a few long ones; or a file with one length "
                 "per line; not given: all are equal");
  add_number(app, "--cap", options.cap, 0, 1 << 20,
             "the longest of long-tail; 0: four times --length");
  add_number(app, "--repeats", options.repeats, 1, 1000);
  add_threads_option(app, options.threads);
  add_clock_option(app, options.clock);
  add_recompute_option(app, options.recompute);
  add_choice(app, "--work", options.work, {"forward", "backward", "update"},
             "forward, backward (both passes) or update (AdamW too)");
  add_choice(app, "--exchange", options.exchange, {"none", "gradients", "weights"},
             "with update: what a rank of several would exchange, sent to itself by NCCL or Gloo; "
             "weights also recomputes the layers");
  add_offload_option(app, options.offload);
  add_memory_option(app, options.memory_gib);
  app.add_flag("--profile", options.profile, "list the kernels that take most of the time");
  if (const auto status = parse(app, arguments)) return *status;

  if (options.exchange != "none") options.work = "update";
  if (options.exchange == "weights") options.recompute = "true";
  if (options.threads > 0) at::set_num_threads(options.threads);
  cap_memory(at::Device(options.device), options.memory_gib);
  CausalLm model =
      random_model(named_shape(options.shape), at::Device(options.device), options.dtype);
  const std::vector<std::int64_t> lengths = lengths_of(options);
  print(options, model, measure(options, model, lengths), lengths);
  return 0;
}

}  // namespace antisd::bench

#endif
