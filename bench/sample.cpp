#ifdef ANTISD_TORCH

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "bench/benchmarks.h"
#include "bench/clock.h"
#include "bench/kernel_profile.h"
#include "bench/options.h"
#include "io/json.h"
#include "ops/sampling.h"

namespace antisd::bench {
namespace {

struct SampleOptions {
  std::string device = "cpu";
  std::int64_t rows = 256, vocabulary = 151'936;
  int repeats = 5;
  bool json = false, profile = false;
};

// Flat: normal, deviation 1, as of a model that was never trained. Peaked: most of the mass in a
// few tokens and a long tail, as of a trained one.
at::Tensor made_up_logits(bool peaked, const SampleOptions& options) {
  const auto on_device = at::TensorOptions().device(at::Device(options.device));
  at::Tensor logits = at::randn({options.rows, options.vocabulary}, on_device);
  if (peaked) {
    const at::Tensor rank = at::arange(options.vocabulary, on_device) * 7919 % options.vocabulary;
    logits = 2 * logits - 2.5 * (rank + 1).log().unsqueeze(0);
  }
  return logits.contiguous();
}

}  // namespace

int run_sample(const Arguments& arguments) {
  SampleOptions options;
  CLI::App app("time to sample a token of each row of logits, by filter", "antisd-bench sample");
  add_choice(app, "--device", options.device, {"cpu", "cuda"});
  add_number(app, "--rows", options.rows, 1, 1 << 16);
  add_number(app, "--vocabulary", options.vocabulary, 1, 1 << 24);
  add_number(app, "--repeats", options.repeats, 1, 1000, "the fastest counts");
  app.add_flag("--profile", options.profile, "list the kernels that take most of the time");
  app.add_flag("--json", options.json, "one line of JSON each");
  if (const auto status = parse(app, arguments)) return *status;
  const at::NoGradGuard no_grad;
  const at::Device device(options.device);
  const int calls = device.is_cuda() ? 50 : 1;
  for (const bool peaked : {false, true}) {
    const at::Tensor logits = made_up_logits(peaked, options);
    const at::Tensor noise = at::rand({options.rows}, logits.options().dtype(at::kDouble));
    for (const auto& [name, settings] : std::vector<std::pair<std::string, SamplingSettings>>{
             {"plain", {}},
             {"top-p 0.95, T 0.7", {.temperature = 0.7, .top_p = 0.95}},
             {"top-p 0.95", {.top_p = 0.95}},
             {"top-k 50", {.top_k = 50}},
             {"min-p 0.1", {.min_p = 0.1}},
             {"all three", {.temperature = 0.7, .top_p = 0.9, .min_p = 0.05, .top_k = 50}}}) {
      const auto run = [&] {
        for (int i = 0; i < calls; ++i)
          sample(logits, options.vocabulary, settings, noise);
      };
      const double ms = 1e3 / calls * best_time(device, false, options.repeats, run);
      const char* kind = peaked ? "peaked" : "flat";
      if (options.json) {
        fmt::print("{}\n", to_json_line(Json{{"rows", options.rows},
                                             {"vocabulary", options.vocabulary},
                                             {"logits", kind},
                                             {"filter", name},
                                             {"ms", ms}}));
      } else {
        fmt::print("{} x {} {:<6} {:<18} {:8.3f} ms\n", options.rows, options.vocabulary, kind,
                   name, ms);
      }
      if (options.profile) print_kernel_profile(run, 8);
    }
  }
  return 0;
}

}  // namespace antisd::bench

#endif
