#ifdef ANTISD_TORCH

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "bench/benchmarks.h"
#ifdef ANTISD_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

#include "bench/clock.h"
#include "bench/options.h"
#include "bench/random_model.h"
#include "bench/shapes.h"
#include "core/error.h"
#include "inference/scorer.h"
#include "io/json.h"
#include "model/weights.h"
#include "ops/token_scores.h"

namespace antisd::bench {
namespace {

struct ScoreBenchOptions {
  std::string part = "model";
  std::string shape = "tiny";
  std::string device = "cpu", dtype = "auto";
  std::string clock = "wall";
  int sequences = 32, length = 128, prompt = 1, shared_prefix = 0;
  int tokens = 32'768, vocabulary = 151'936;
  std::vector<int> hidden = {2560, 4096};
  ScoreBlocks blocks;  // of token_scores; 0: automatic
  int threads = 0, repeats = 5;
  bool json = false;

  at::Device where() const { return at::Device(device); }
  bool processor_time() const { return clock == "cpu"; }
  template <typename Work>
  double time(Work&& work) const {
    return best_time(where(), processor_time(), repeats, work);
  }
};

// Peak bytes that `work` holds beyond those held before it; 0 if they are not counted.
template <typename Work>
std::int64_t peak_bytes(at::Device device, Work&& work) {
#ifdef ANTISD_CUDA
  if (device.is_cuda()) {
    namespace allocator = c10::cuda::CUDACachingAllocator;
    const auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const c10::DeviceIndex index = device.has_index() ? device.index() : 0;
    allocator::resetPeakStats(index);
    const std::int64_t before = allocator::getDeviceStats(index).allocated_bytes[all].current;
    work();
    return allocator::getDeviceStats(index).allocated_bytes[all].peak - before;
  }
#endif
  (void)device;
  work();
  return 0;
}

std::string in_gib(std::int64_t bytes) {
  return fmt::format("{:.3f} GiB", static_cast<double>(bytes) / (1 << 30));
}

// Requests whose prompts start with the same `shared_prefix` tokens and then differ.
std::vector<ScoreRequest> make_requests(const ScoreBenchOptions& o, std::int64_t vocabulary) {
  std::vector<ScoreRequest> requests(o.sequences);
  const int prompt = std::max(o.prompt, o.shared_prefix);
  for (std::size_t s = 0; s < requests.size(); ++s) {
    for (int i = 0; i < o.length; ++i) {
      const std::int64_t own = i < o.shared_prefix ? 0 : static_cast<std::int64_t>(s) + 1;
      (i < prompt ? requests[s].prompt_ids : requests[s].response_ids)
          .push_back(made_up_id(own, i, vocabulary));
    }
  }
  return requests;
}

double largest_difference(const std::vector<TokenScores>& a, const std::vector<TokenScores>& b) {
  double largest = 0;
  for (std::size_t s = 0; s < a.size(); ++s) {
    for (std::size_t i = 0; i < a[s].logp.size(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(a[s].logp[i]) - b[s].logp[i]));
  }
  return largest;
}

Json heading(const ScoreBenchOptions& o) {
  return {{"bench", "score"},
          {"part", o.part},
          {"device", o.device},
          {"dtype", dtype_name(compute_dtype(o.where(), o.dtype))},
          {"threads", at::get_num_threads()},
          {"clock", o.clock}};
}

// score() as it is called; with a shared prefix, also without sharing.
void bench_model(const ScoreBenchOptions& o) {
  CausalLm model(named_shape(o.shape), o.where(), compute_dtype(o.where(), o.dtype));
  initialise_randomly(model, 1);
  const std::vector<ScoreRequest> requests = make_requests(o, model.shape().vocabulary);
  std::vector<TokenScores> scores, apart;
  const std::int64_t peak = peak_bytes(o.where(), [&] { scores = score(model, requests); });
  const double seconds = o.time([&] { score(model, requests); });
  const double tokens = static_cast<double>(o.sequences) * o.length;
  Json result = heading(o);
  result.update({{"shape", o.shape},
                 {"sequences", o.sequences},
                 {"length", o.length},
                 {"prompt", std::max(o.prompt, o.shared_prefix)},
                 {"shared_prefix", o.shared_prefix},
                 {"seconds", seconds},
                 {"tokens_per_s", tokens / seconds},
                 {"peak_bytes_beyond_weights", peak}});
  double unshared = 0, difference = 0;
  if (o.shared_prefix > 0) {
    ScoreOptions options;
    options.pack.share = false;
    apart = score(model, requests, options);
    unshared = o.time([&] { score(model, requests, options); });
    difference = largest_difference(scores, apart);
    result.update({{"seconds_unshared", unshared},
                   {"speedup", unshared / seconds},
                   {"largest_logp_difference", difference}});
  }
  if (o.json) {
    fmt::print("{}\n", result.dump());
    return;
  }
  fmt::print("score {}: {} x {} tokens, {}, {} threads\n", o.shape, o.sequences, o.length, o.device,
             at::get_num_threads());
  fmt::print("  {:9.2f} ms, {:.0f} tokens/s\n", seconds * 1e3, tokens / seconds);
  if (o.where().is_cuda()) fmt::print("  peak beyond weights {}\n", in_gib(peak));
  if (o.shared_prefix > 0) {
    fmt::print(
        "  {:9.2f} ms without sharing the first {} tokens: {:.2f} times as long; logp differs by "
        "{:.2g}\n",
        unshared * 1e3, o.shared_prefix, unshared / seconds, difference);
  }
}

// Only the logits' matrix products, in the blocks of token_scores.
void head_products(const at::Tensor& hidden, const at::Tensor& head, at::ScalarType out_type) {
  const ScoreBlocks blocks = score_blocks(hidden.device(), /*backward=*/false);
  const at::Tensor buffer = at::empty(
      {std::min(blocks.tokens, hidden.size(0)) * std::min(blocks.vocabulary, head.size(0))},
      hidden.options().dtype(out_type));
  for (std::int64_t t = 0; t < hidden.size(0); t += blocks.tokens) {
    const std::int64_t tokens = std::min(blocks.tokens, hidden.size(0) - t);
    for (std::int64_t c = 0; c < head.size(0); c += blocks.vocabulary) {
      const std::int64_t columns = std::min(blocks.vocabulary, head.size(0) - c);
      at::Tensor logits = buffer.narrow(0, 0, tokens * columns).view({tokens, columns});
      const at::Tensor a = hidden.narrow(0, t, tokens), b = head.narrow(0, c, columns).t();
      if (out_type == hidden.scalar_type()) {
        at::mm_out(logits, a, b);
      } else {
        at::mm_out(logits, a, b, out_type);
      }
    }
  }
}

// token_scores compared with the matrix products it needs.
void bench_head(const ScoreBenchOptions& o) {
  const at::NoGradGuard no_grad;
  const at::ScalarType type = compute_dtype(o.where(), o.dtype);
  Json rows = Json::array();
  if (!o.json)
    fmt::print("token_scores: {} tokens, vocabulary {}, {}\n", o.tokens, o.vocabulary, o.device);
  for (const int width : o.hidden) {
    const auto options = at::TensorOptions().device(o.where()).dtype(type);
    const at::Tensor hidden = at::randn({o.tokens, width}, options);
    const at::Tensor head = at::empty({o.vocabulary, width}, options).normal_(0, 0.02);
    const at::Tensor targets = at::randint(0, o.vocabulary, {o.tokens}, options.dtype(at::kInt));
    const auto work = [&] {
      token_scores(hidden, head, targets, 1.0, o.vocabulary, Gradients::kNone, o.blocks);
    };
    const std::int64_t peak = peak_bytes(o.where(), work);
    // Alternating, so that a drifting clock affects both equally.
    double ours = 0, products = 0, narrow = 0;
    const auto keep = [](double& best, double seconds) {
      if (best == 0 || seconds < best) best = seconds;
    };
    for (int i = 0; i < o.repeats; ++i) {
      const auto once = [&](auto&& part) {
        return best_time(o.where(), o.processor_time(), 1, part);
      };
      keep(ours, once(work));
      keep(products, once([&] { head_products(hidden, head, at::kFloat); }));
      keep(narrow, once([&] { head_products(hidden, head, type); }));
    }
    rows.push_back({{"hidden", width},
                    {"seconds", ours},
                    {"seconds_products_fp32_logits", products},
                    {"seconds_products", narrow},
                    {"ratio", ours / narrow},
                    {"peak_bytes", peak}});
    if (o.json) continue;
    fmt::print(
        "  width {}: {:.2f} ms; products alone {:.2f} ms ({:.2f} times), with fp32 logits {:.2f} "
        "ms ({:.2f} times)",
        width, ours * 1e3, narrow * 1e3, ours / narrow, products * 1e3, ours / products);
    if (o.where().is_cuda()) fmt::print("; peak {}", in_gib(peak));
    fmt::print("\n");
  }
  if (!o.json) return;
  Json result = heading(o);
  result.update({{"tokens", o.tokens}, {"vocabulary", o.vocabulary}, {"widths", rows}});
  fmt::print("{}\n", result.dump());
}

}  // namespace

int run_score(const Arguments& arguments) {
  ScoreBenchOptions o;
  CLI::App app(
      "time and memory of scoring\n"
      "  --part model    score() on random weights; with --shared-prefix also unshared\n"
      "  --part head     token_scores compared with the head's matrix products\n"
      "  --part teacher  8 responses of 1,024 tokens behind one shared prefix of 4,096",
      "antisd-bench score");
  add_choice(app, "--part", o.part, {"model", "head", "teacher"});
  add_model_options(app, o.shape, o.device);
  add_dtype_option(app, o.dtype);
  const CLI::Option* sequences = add_number(app, "--sequences", o.sequences, 1, 1 << 20);
  const CLI::Option* length = add_number(app, "--length", o.length, 2, 1 << 20,
                                         "tokens per sequence, including the prompt");
  add_number(app, "--prompt", o.prompt, 1, 1 << 20, "prompt tokens, which are not scored");
  const CLI::Option* prefix = add_number(app, "--shared-prefix", o.shared_prefix, 0, 1 << 20,
                                         "leading tokens that all prompts share");
  add_number(app, "--tokens", o.tokens, 1, 1 << 24, "head: tokens");
  add_number(app, "--vocabulary", o.vocabulary, 2, 1 << 24, "head: vocabulary");
  app.add_option("--hidden", o.hidden, "head: widths")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--token-block", o.blocks.tokens, "head: tokens per block; 0: automatic")
      ->capture_default_str();
  app.add_option("--vocabulary-block", o.blocks.vocabulary,
                 "head: vocabulary per block; 0: automatic")
      ->capture_default_str();
  add_threads_option(app, o.threads);
  add_number(app, "--repeats", o.repeats, 1, 1000);
  add_clock_option(app, o.clock);
  app.add_flag("--json", o.json);
  if (const auto status = parse(app, arguments)) return *status;
  if (o.threads > 0) at::set_num_threads(o.threads);
  if (o.part == "teacher") {
    if (sequences->empty()) o.sequences = 8;
    if (prefix->empty()) o.shared_prefix = 4096;
    if (length->empty()) o.length = o.shared_prefix + 1024;
  }
  if (std::max(o.prompt, o.shared_prefix) >= o.length) {
    throw InputError("no token is left to score: the prompt is as long as the sequence",
                     {.remedy = "raise --length or lower --prompt and --shared-prefix"});
  }
  if (o.part == "head") {
    bench_head(o);
  } else {
    bench_model(o);
  }
  return 0;
}

}  // namespace antisd::bench

#endif
