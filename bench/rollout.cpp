#ifdef ANTISD_TORCH

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/benchmarks.h"
#include "bench/clock.h"
#include "bench/kernel_profile.h"
#include "bench/options.h"
#include "bench/peer.h"
#include "bench/random_model.h"
#include "bench/roofline.h"
#include "bench/shapes.h"
#include "core/rng.h"
#include "core/stopwatch.h"
#include "inference/rollout_engine.h"
#include "inference/scorer.h"
#include "io/json.h"
#include "model/adapted_shape.h"

namespace antisd::bench {
namespace {

struct RolloutBenchOptions {
  std::string shape = "tiny", device = "cpu", dtype = "auto", base = "model", peer;
  int sequences = 256, slots = 0, group = 1, prompt = 64, tokens = 128, threads = 0, repeats = 2;
  double temperature = 1, top_p = 1, sharpen = 1;
  std::int64_t lora_rank = 0;
  bool long_tail = false, json = false, profile = false, check = false;
};

// Bytes per second when reading memory that is not cached.
double read_bandwidth(at::Device device) {
  const at::Tensor data =
      at::ones({std::int64_t{1} << (device.is_cuda() ? 30 : 27)}, at::kFloat).to(device);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    Stopwatch watch;
    data.sum().item<float>();
    best = std::max(best, static_cast<double>(data.nbytes()) / watch.lap());
  }
  return best;
}

// A few very long responses among many short ones: Pareto-distributed lengths with a mean near a
// quarter of the limit.
std::size_t drawn_length(const CounterRng& rng, std::uint32_t sequence, int most) {
  const double u = rng.uniform({.sample = sequence});
  return static_cast<std::size_t>(std::clamp(0.1 * most / std::pow(1 - u, 0.8), 1.0, 1.0 * most));
}

void print_score_difference(const CausalLm& model, const std::vector<RolloutRequest>& requests,
                            const SampleBatch& batch) {
  std::vector<ScoreRequest> scored;
  for (const SampleGroup& group : batch.groups) {
    for (const Response& sample : group.samples)
      scored.push_back({requests[group.request].prompt_ids, sample.ids});
  }
  const auto scores = score(model, scored);
  double sum = 0, worst = 0, entropy = 0, tokens = 0;
  std::size_t next = 0;
  for (const SampleGroup& group : batch.groups) {
    for (const Response& sample : group.samples) {
      for (std::size_t i = 0; i < sample.ids.size(); ++i) {
        const double difference = std::abs(sample.raw_logp[i] - scores[next].logp[i]);
        sum += difference;
        worst = std::max(worst, difference);
        entropy += scores[next].entropy[i];
        ++tokens;
      }
      ++next;
    }
  }
  fmt::print(
      "  sampled against scored: mean |delta logp| {:.5f}, largest {:.4f}, mean entropy {:.3f}\n",
      sum / tokens, worst, entropy / tokens);
}

CausalLm make_model(const RolloutBenchOptions& options) {
  ModelShape shape = named_shape(options.shape);
  shape.max_positions =
      std::max<std::int64_t>(shape.max_positions, options.prompt + options.tokens);
  shape.base = base_format(options.base);
  LoraConfig adapters;
  adapters.rank = options.lora_rank;
  shape = adapted_shape(shape, adapters);
  CausalLm model = random_model(shape, at::Device(options.device), options.dtype);
  model.parameters().at("final_norm").value.fill_(options.sharpen);  // scales the logits
  return model;
}

std::vector<RolloutRequest> make_requests(const RolloutBenchOptions& options,
                                          std::int64_t vocabulary) {
  std::vector<RolloutRequest> requests;
  for (int left = options.sequences; left > 0; left -= options.group) {
    RolloutRequest request{
        {}, std::min(left, options.group), static_cast<std::uint32_t>(requests.size())};
    for (int i = 0; i < options.prompt; ++i) {
      request.prompt_ids.push_back(made_up_id(std::ssize(requests), i, vocabulary));
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

struct Measured {
  RolloutStats best;           // of the fastest run
  double processor_s = 0;      // minimum of all runs
  std::vector<int> differing;  // sequences that differ from the first run's, by run
  // How full the slots are while sequences wait for one, before only the tail is left; a share,
  // summed over `waiting_steps`.
  double full = 0, waiting_steps = 0;
  std::vector<std::vector<std::int64_t>> lengths;  // of the first run's responses, by group
};

Measured measure(const RolloutBenchOptions& options, const CausalLm& model,
                 const std::vector<RolloutRequest>& requests) {
  Measured measured;
  const int slots = options.slots > 0 ? options.slots : options.sequences;
  RolloutOptions rollout{.sampling = {.temperature = options.temperature, .top_p = options.top_p},
                         .max_new_tokens = options.tokens,
                         .seed = 1};
  const CounterRng rng(3, RandomStream::kTask);
  if (options.long_tail) {
    // A response's first tokens identify it.
    rollout.stops = [&](std::span<const std::int32_t> ids) {
      const std::uint32_t name = ids.size() > 1 ? ids[0] * 65'537U + ids[1] : 0;
      return ids.size() > 1 && ids.size() >= drawn_length(rng, name, options.tokens);
    };
  }
  rollout.on_step = [&](const RolloutProgress& progress) {
    if (progress.waiting == 0) return;
    measured.full += static_cast<double>(progress.running) / slots;
    ++measured.waiting_steps;
  };
  RolloutEngine engine({.max_sequences = slots});
  std::vector<std::vector<std::int32_t>> first_ids;  // of the first run
  for (int i = 0; i < options.repeats; ++i) {
    Clock clock(at::kCPU, /*processor_time=*/true);
    const SampleBatch batch = engine.generate(model, requests, rollout);
    const double seconds = clock.lap();
    if (i == 0 || seconds < measured.processor_s) measured.processor_s = seconds;
    if (i == 0 || batch.stats.total_s < measured.best.total_s) measured.best = batch.stats;
    std::size_t next = 0;
    measured.differing.push_back(0);
    for (const SampleGroup& group : batch.groups) {
      if (i == 0) measured.lengths.emplace_back();
      for (const Response& sample : group.samples) {
        if (i == 0) {
          measured.lengths.back().push_back(std::ssize(sample.ids));
          first_ids.push_back(sample.ids);
        } else {
          measured.differing.back() += first_ids[next++] == sample.ids ? 0 : 1;
        }
      }
    }
    if (options.check && i + 1 == options.repeats) print_score_difference(model, requests, batch);
  }
  if (options.profile) print_kernel_profile([&] { engine.generate(model, requests, rollout); });
  return measured;
}

// The time that only reading memory would take.
struct Floor {
  double weights = 0, kv = 0;  // bytes per step
  double bandwidth = 0;        // bytes per second
  double seconds = 0;          // of all steps
};

// A step reads all weights (without the embedding of an untied model) and the stored keys and
// values.
Floor find_floor(const RolloutBenchOptions& options, const CausalLm& model,
                 const RolloutStats& stats) {
  Floor floor;
  for (const Parameter& parameter : model.parameters()) {
    if (model.shape().tied_head || parameter.name() != "embedding")
      floor.weights += static_cast<double>(parameter.bytes());
  }
  const auto steps = static_cast<double>(stats.steps);
  const double rows = static_cast<double>(stats.new_tokens) / steps;
  const double context = options.prompt + steps / 2;
  floor.kv = rows * context * static_cast<double>(KvPool::page_bytes(model)) / kPageTokens;
  floor.bandwidth = read_bandwidth(model.device());
  floor.seconds = (floor.weights + floor.kv) / floor.bandwidth * steps;
  return floor;
}

void print_json(const RolloutBenchOptions& options, const CausalLm& model, const Measured& measured,
                const Floor& floor, const Roofline& roofline) {
  const RolloutStats& best = measured.best;
  const Json line = {{"shape", options.shape},
                     {"device", options.device},
                     {"dtype", dtype_name(model.dtype())},
                     {"base_dtype", options.base},
                     {"lora_rank", options.lora_rank},
                     {"top_p", options.top_p},
                     {"sequences", options.sequences},
                     {"prompt", options.prompt},
                     {"new", options.tokens},
                     {"tokens_per_s", best.tokens_per_second()},
                     {"step_ms", best.decode_s * 1e3 / static_cast<double>(best.steps)},
                     {"floor_share", floor.seconds / best.total_s},
                     {"decode_floor_share", floor.seconds / best.decode_s},
                     {"roofline", to_json(roofline, best.steps, best.decode_s)},
                     {"slot_occupancy", best.slot_occupancy},
                     {"prefill_s", best.prefill_s},
                     {"decode_s", best.decode_s},
                     {"schedule_s", best.schedule_s},
                     {"total_s", best.total_s},
                     {"processor_s", measured.processor_s}};
  fmt::print("{}\n", to_json_line(line));
}

void print_text(const RolloutBenchOptions& options, const CausalLm& model, const Measured& measured,
                const Floor& floor, const Roofline& roofline) {
  const RolloutStats& best = measured.best;
  const auto new_tokens = static_cast<double>(best.new_tokens);
  const double flops = 2 * static_cast<double>(model.shape().active_parameter_count()) * new_tokens;
  fmt::print("{}: {:.1f} M parameters, {} {}, {} sequences, {} prompt + {} new tokens\n",
             options.shape, static_cast<double>(model.shape().parameter_count()) / 1e6,
             options.device, dtype_name(model.dtype()), options.sequences, options.prompt,
             options.tokens);
  fmt::print("  {:.0f} tokens/s, {:.2f} ms a step, {:.1f} GFLOP/s in steps\n",
             best.tokens_per_second(), best.decode_s * 1e3 / static_cast<double>(best.steps),
             flops / best.decode_s / 1e9);
  fmt::print(
      "  {:.1f} % of the floor ({:.1f} MB weights + {:.1f} MB keys and values a step at "
      "{:.1f} GB/s); decoding alone {:.1f} %\n",
      100 * floor.seconds / best.total_s, floor.weights / 1e6, floor.kv / 1e6,
      floor.bandwidth / 1e9, 100 * floor.seconds / best.decode_s);
  print_roofline(roofline, best.steps, best.decode_s);
  fmt::print(
      "  prefill {:.3f} s ({} tokens), decode {:.3f} s ({} steps), schedule {:.3f} s, total "
      "{:.3f} s\n",
      best.prefill_s, best.prefill_tokens, best.decode_s, best.steps, best.schedule_s,
      best.total_s);
  fmt::print("  {:.3f} s of processor time, {:.0f} tokens a second of it\n", measured.processor_s,
             new_tokens / measured.processor_s);
  if (measured.waiting_steps > 0) {
    fmt::print("  slots {:.1f} % full while sequences wait for one\n",
               100 * measured.full / measured.waiting_steps);
  }
  if (options.repeats > 1) {
    const bool same = std::ranges::all_of(measured.differing, [](int count) { return count == 0; });
    fmt::print(
        "  {} runs with one seed: {}\n", options.repeats,
        same ? "the same ids"
             : fmt::format("DIFFERENT ids, in {} sequences", fmt::join(measured.differing, ", ")));
  }
  fmt::print("  slots {:.1f} % full, {} preemptions, {} of {} pages used at most\n",
             100 * best.slot_occupancy, best.preemptions, best.peak_kv_pages, best.kv_pages);
}

void run_peers(const RolloutBenchOptions& options, double tokens_per_s) {
  std::fflush(stdout);
  print_peers(options.peer, "tools/bench_rollout_peer.py",
              {"--shape", options.shape, "--device", options.device, "--sequences",
               std::to_string(options.sequences), "--prompt", std::to_string(options.prompt),
               "--new", std::to_string(options.tokens), "--threads",
               std::to_string(options.threads), "--repeats", std::to_string(options.repeats)},
              tokens_per_s);
}

void describe(CLI::App& app, RolloutBenchOptions& options) {
  add_model_options(app, options.shape, options.device);
  add_dtype_option(app, options.dtype);
  add_base_option(app, options.base);
  add_number(app, "--sequences", options.sequences, 1, 1 << 16, "in all");
  add_number(app, "--slots", options.slots, 0, 1 << 16, "sequences at a time; 0: all");
  add_number(app, "--group", options.group, 1, 1 << 16, "samples of a prompt");
  add_number(app, "--prompt", options.prompt, 1, 1 << 20, "tokens of a prompt");
  add_number(app, "--new", options.tokens, 1, 1 << 20, "new tokens per sequence");
  app.add_option("--temperature", options.temperature)->capture_default_str();
  app.add_option("--top-p", options.top_p)->capture_default_str();
  add_number(app, "--lora", options.lora_rank, 0, 1 << 16, "rank of adapters; 0: none");
  add_threads_option(app, options.threads);
  add_number(app, "--repeats", options.repeats, 1, 100, "the fastest counts");
  app.add_flag("--long-tail", options.long_tail, "long-tailed distribution of lengths");
  app.add_flag("--check", options.check,
               "score the samples and print the differences of the log-probabilities");
  app.add_option("--sharpen", options.sharpen,
                 "multiply the logits, e.g. until the mean entropy is below 1 nat")
      ->capture_default_str();
  app.add_flag("--profile", options.profile, "list the kernels that take most of the time");
  app.add_option(
      "--peer", options.peer,
      "a Python with transformers: its generate and a bare PyTorch loop do the same work");
  app.add_flag("--json", options.json, "one line of JSON");
}

}  // namespace

int run_rollout(const Arguments& arguments) {
  RolloutBenchOptions options;
  CLI::App app("tokens per second of sampling", "antisd-bench rollout");
  describe(app, options);
  if (const auto status = parse(app, arguments)) return *status;

  if (options.threads > 0) at::set_num_threads(options.threads);
  const at::NoGradGuard no_grad;
  const CausalLm model = make_model(options);
  const Measured measured =
      measure(options, model, make_requests(options, model.shape().vocabulary));
  const Floor floor = find_floor(options, model, measured.best);
  const Roofline roofline =
      find_roofline(model, options.prompt, measured.lengths, measured.best.steps, floor.bandwidth);
  (options.json ? print_json : print_text)(options, model, measured, floor, roofline);
  if (!options.json && !options.peer.empty()) run_peers(options, measured.best.tokens_per_second());
  return 0;
}

}  // namespace antisd::bench

#endif
