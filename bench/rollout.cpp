#ifdef ANTISD_TORCH

#include "bench/rollout.h"

#include <algorithm>
#include <chrono>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/clock.h"
#include "bench/kernel_profile.h"
#include "bench/peer.h"
#include "bench/random_model.h"
#include "bench/shapes.h"
#include "core/rng.h"
#include "io/json.h"
#include "rollout/rollout_engine.h"
#include "scoring/scorer.h"

namespace antisd::bench {
namespace {

struct RolloutBenchOptions {
  std::string shape = "tiny", device = "cpu", dtype = "auto", peer;
  int sequences = 256, slots = 0, group = 1, prompt = 64, tokens = 128, threads = 0, repeats = 2;
  double temperature = 1, sharpen = 1;
  bool long_tail = false, json = false, profile = false, check = false;
};

// Bytes a second of reading memory that is in no cache.
double read_bandwidth(at::Device device) {
  const at::Tensor data =
      at::ones({std::int64_t{1} << (device.is_cuda() ? 30 : 27)}, at::kFloat).to(device);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    data.sum().item<float>();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(data.nbytes()) / seconds.count());
  }
  return best;
}

// Few very long responses among many short ones: lengths of a Pareto distribution with mean near a
// quarter of the limit.
std::size_t drawn_length(const CounterRng& rng, std::uint32_t sequence, int most) {
  const double u = rng.uniform({.sample = sequence});
  return static_cast<std::size_t>(std::clamp(0.1 * most / std::pow(1 - u, 0.8), 1.0, 1.0 * most));
}

void print_score_difference(const CausalLm& model, const std::vector<RolloutRequest>& requests,
                            const SampleBatch& batch) {
  std::vector<ScoreRequest> scored;
  for (const SampleGroup& group : batch.groups) {
    for (const RolloutSample& sample : group.samples)
      scored.push_back({requests[group.request].prompt_ids, sample.ids});
  }
  const auto scores = score(model, scored);
  double sum = 0, worst = 0, entropy = 0, tokens = 0;
  std::size_t next = 0;
  for (const SampleGroup& group : batch.groups) {
    for (const RolloutSample& sample : group.samples) {
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

}  // namespace

int run_rollout(const std::vector<std::string>& arguments) {
  RolloutBenchOptions options;
  CLI::App app("tokens a second of sampling", "antisd-bench rollout");
  app.add_option("--shape", options.shape)->capture_default_str();
  app.add_option("--device", options.device)
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--dtype", options.dtype, "auto: bf16 on a GPU")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "bf16", "fp16"}));
  app.add_option("--sequences", options.sequences, "in all")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--slots", options.slots, "sequences at a time; 0: all")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 16));
  app.add_option("--group", options.group, "samples of a prompt")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--prompt", options.prompt, "tokens of a prompt")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--new", options.tokens, "new tokens of each sequence")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--temperature", options.temperature)->capture_default_str();
  app.add_option("--threads", options.threads, "0: the library's choice")->capture_default_str();
  app.add_option("--repeats", options.repeats, "the fastest counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_flag("--long-tail", options.long_tail, "lengths of a long-tailed distribution");
  app.add_flag("--check", options.check,
               "score what was sampled and print how far the log-probabilities are apart");
  app.add_option("--sharpen", options.sharpen,
                 "multiply the logits, e.g. until the mean entropy is below 1 nat")
      ->capture_default_str();
  app.add_flag("--profile", options.profile, "list the kernels that take most of the time");
  app.add_option(
      "--peer", options.peer,
      "a Python with transformers: its generate and a bare PyTorch loop do the same work");
  app.add_flag("--json", options.json, "one line of JSON");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.threads > 0) at::set_num_threads(options.threads);

  const at::Device device(options.device);
  ModelShape shape = named_shape(options.shape);
  shape.max_positions =
      std::max<std::int64_t>(shape.max_positions, options.prompt + options.tokens);
  CausalLm model = random_model(shape, device, options.dtype);
  const at::NoGradGuard no_grad;
  for (Parameter& parameter : model.parameters()) {
    if (parameter.name == "final_norm")
      parameter.value.fill_(options.sharpen);  // scales the logits
  }
  std::vector<RolloutRequest> requests;
  for (int left = options.sequences; left > 0; left -= options.group) {
    RolloutRequest request{
        {}, std::min(left, options.group), static_cast<std::uint32_t>(requests.size())};
    for (int i = 0; i < options.prompt; ++i) {
      request.prompt_ids.push_back(static_cast<std::int32_t>(
          (requests.size() * 7919 + static_cast<std::size_t>(i) * 104'729) % shape.vocabulary));
    }
    requests.push_back(std::move(request));
  }
  RolloutOptions rollout{.sampling = {.temperature = options.temperature},
                         .max_new_tokens = options.tokens,
                         .seed = 1};
  const CounterRng rng(3, RandomStream::kTask);
  if (options.long_tail) {
    // A response's first tokens tell it from all others.
    rollout.stops = [&](std::span<const std::int32_t> ids) {
      const std::uint32_t name = ids.size() > 1 ? ids[0] * 65'537U + ids[1] : 0;
      return ids.size() > 1 && ids.size() >= drawn_length(rng, name, options.tokens);
    };
  }
  const int slots = options.slots > 0 ? options.slots : options.sequences;
  // How full the slots are while sequences wait for one: before only the tail is left.
  double full = 0, waiting_steps = 0;
  rollout.on_step = [&](const RolloutProgress& progress) {
    if (progress.waiting == 0) return;
    full += static_cast<double>(progress.running) / slots;
    ++waiting_steps;
  };
  RolloutEngine engine({.max_sequences = slots});
  std::vector<std::vector<std::int32_t>> ids;  // of the first run
  std::vector<int> differing;                  // sequences that differ from the first run's, by run
  RolloutStats best;
  double processor_s = 0;
  for (int i = 0; i < options.repeats; ++i) {
    Clock clock(at::kCPU, /*processor_time=*/true);
    const SampleBatch batch = engine.generate(model, requests, rollout);
    const double seconds = clock.lap();
    if (i == 0 || seconds < processor_s) processor_s = seconds;
    if (i == 0 || batch.stats.total_s < best.total_s) best = batch.stats;
    std::size_t next = 0;
    differing.push_back(0);
    for (const SampleGroup& group : batch.groups) {
      for (const RolloutSample& sample : group.samples) {
        if (i == 0) {
          ids.push_back(sample.ids);
        } else {
          differing.back() += ids[next++] == sample.ids ? 0 : 1;
        }
      }
    }
    if (options.check && i + 1 == options.repeats) print_score_difference(model, requests, batch);
  }
  if (options.profile) print_kernel_profile([&] { engine.generate(model, requests, rollout); });

  // A step reads all weights (of an untied model not the embedding) and what has been stored.
  double weights = 0;
  for (const Parameter& parameter : model.parameters()) {
    if (shape.tied_head || parameter.name != "embedding")
      weights += static_cast<double>(parameter.value.nbytes());
  }
  const double rows = static_cast<double>(best.new_tokens) / static_cast<double>(best.steps);
  const double context = options.prompt + static_cast<double>(best.steps) / 2;
  const double token_bytes = static_cast<double>(KvPool::page_bytes(model)) / kPageTokens;
  const double kv = rows * context * token_bytes;
  const double bandwidth = read_bandwidth(device);
  const double floor_s = (weights + kv) / bandwidth * static_cast<double>(best.steps);
  const double flops = 2 * static_cast<double>(shape.active_parameter_count()) *
                       static_cast<double>(best.new_tokens);
  const double ms = 1e3 / static_cast<double>(best.steps);
  if (options.json) {
    const Json line = {{"shape", options.shape},
                       {"device", options.device},
                       {"dtype", dtype_name(model.dtype())},
                       {"sequences", options.sequences},
                       {"prompt", options.prompt},
                       {"new", options.tokens},
                       {"tokens_per_s", best.tokens_per_second()},
                       {"step_ms", best.decode_s * ms},
                       {"floor_share", floor_s / best.total_s},
                       {"decode_floor_share", floor_s / best.decode_s},
                       {"slot_occupancy", best.slot_occupancy},
                       {"prefill_s", best.prefill_s},
                       {"decode_s", best.decode_s},
                       {"schedule_s", best.schedule_s},
                       {"total_s", best.total_s},
                       {"processor_s", processor_s}};
    fmt::print("{}\n", to_json_line(line));
    return 0;
  }
  fmt::print("{}: {:.1f} M parameters, {} {}, {} sequences, {} prompt + {} new tokens\n",
             options.shape, static_cast<double>(shape.parameter_count()) / 1e6, options.device,
             dtype_name(model.dtype()), options.sequences, options.prompt, options.tokens);
  fmt::print("  {:.0f} tokens/s, {:.2f} ms a step, {:.1f} GFLOP/s in steps\n",
             best.tokens_per_second(), best.decode_s * ms, flops / best.decode_s / 1e9);
  fmt::print(
      "  {:.1f} % of the floor ({:.1f} MB weights + {:.1f} MB keys and values a step at "
      "{:.1f} GB/s); decoding alone {:.1f} %\n",
      100 * floor_s / best.total_s, weights / 1e6, kv / 1e6, bandwidth / 1e9,
      100 * floor_s / best.decode_s);
  fmt::print(
      "  prefill {:.3f} s ({} tokens), decode {:.3f} s ({} steps), schedule {:.3f} s, total "
      "{:.3f} s\n",
      best.prefill_s, best.prefill_tokens, best.decode_s, best.steps, best.schedule_s,
      best.total_s);
  fmt::print("  {:.3f} s of processor time, {:.0f} tokens a second of it\n", processor_s,
             static_cast<double>(best.new_tokens) / processor_s);
  if (waiting_steps > 0)
    fmt::print("  slots {:.1f} % full while sequences wait for one\n", 100 * full / waiting_steps);
  if (options.repeats > 1)
    fmt::print("  {} runs with one seed: {}\n", options.repeats,
               *std::max_element(differing.begin(), differing.end()) == 0
                   ? "the same ids"
                   : fmt::format("DIFFERENT ids, in {} sequences", fmt::join(differing, ", ")));
  fmt::print("  slots {:.1f} % full, {} preemptions, {} of {} pages used at most\n",
             100 * best.slot_occupancy, best.preemptions, best.peak_kv_pages, best.kv_pages);
  if (!options.peer.empty()) {
    std::fflush(stdout);
    print_peers(options.peer, "tools/bench_rollout_peer.py",
                {"--shape", options.shape, "--device", options.device, "--sequences",
                 std::to_string(options.sequences), "--prompt", std::to_string(options.prompt),
                 "--new", std::to_string(options.tokens), "--threads",
                 std::to_string(options.threads), "--repeats", std::to_string(options.repeats)},
                best.tokens_per_second());
  }
  return 0;
}

}  // namespace antisd::bench

#endif
