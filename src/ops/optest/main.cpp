// antisd-optest: every op on every backend, values and gradients, against plain tensor arithmetic
// in double precision on the CPU. One line per op and backend; exit status 1 if any differs.
// Without a GPU it checks only the CPU and says so.
#include <algorithm>
#include <cstdio>
#include <tuple>

#include <fmt/format.h>

#include "ops/device.h"
#include "ops/optest/value_checks.h"

namespace antisd::inline ops {
namespace {

// Prints one line per check and counts them.
class Report {
 public:
  // `error`: at most 1 is correct.
  void check(const std::string& name, const std::string& backend,
             const std::function<double()>& error) {
    try {
      const double found = error();
      const bool good = found <= 1;
      ++(good ? passed_ : failed_);
      fmt::print("{:<6} {:<48} {:<10} error {:.3g} of its tolerance\n", good ? "ok" : "FAILED",
                 name, backend, found);
    } catch (const std::exception& problem) {
      ++failed_;
      fmt::print("FAILED {:<48} {:<10} {}\n", name, backend,
                 std::string(problem.what()).substr(0, 300));
    }
  }

  int exit_status() const {
    fmt::print("{} passed, {} failed\n", passed_, failed_);
    return failed_ == 0 ? 0 : 1;
  }

 private:
  int passed_ = 0, failed_ = 0;
};

std::vector<Backend> find_backends() {
  const TensorLibraryInfo library = describe_tensor_library();
  std::vector<Backend> backends = {{at::kCPU, at::kFloat, 2e-5}};
  if (library.gpus.empty()) {
    fmt::print("no GPU here: only the CPU\n");
    for (const GpuProblem& problem : library.gpu_problems)
      fmt::print("{}; {}\n", problem.what, problem.remedy);
    return backends;
  }
  const at::Device gpu(at::kCUDA, 0);
  // fp32 products run without TF32; bf16 has 8 bits of mantissa and rounds every stored value.
  backends.push_back({gpu, at::kFloat, 1e-4});
  backends.push_back({gpu, at::kBFloat16, 3e-2});
  // 11 bits, so an eighth of bf16's tolerance; below 6e-5 fp16 has steps of 6e-8, which are too
  // small to matter here.
  at::globalContext().setAllowFP16ReductionCuBLAS(/*allow_reduced_precision=*/false);
  backends.push_back({gpu, at::kHalf, 3e-2 / 8});
  fmt::print("cuda:0: {}\n", library.gpus[0].description);
  return backends;
}

std::vector<at::Device> devices_of(const std::vector<Backend>& backends) {
  std::vector<at::Device> devices;
  for (const Backend& backend : backends) {
    if (std::ranges::find(devices, backend.device) == devices.end())
      devices.push_back(backend.device);
  }
  return devices;
}

void check_optimizer(Report& report, std::vector<Backend> backends) {
  backends.push_back({at::kCPU, at::kBFloat16, 0});
  for (const Backend& backend : backends) {
    for (const std::int64_t count : {5, 40'007, 1 << 20}) {
      report.check(fmt::format("adamw {}", count), backend.name(),
                   [&] { return adamw_error(backend, count); });
    }
    report.check("squared_norms", backend.name(), [&] { return squared_norms_error(backend); });
  }
}

void check_decoding(Report& report, const std::vector<Backend>& backends) {
  for (const auto& [name, shape, window] :
       std::vector<std::tuple<std::string, AttentionShape, std::int64_t>>{
           {"decode_attention gqa 8/2x64", {8, 2, 64}, 0},
           {"decode_attention gqa 8/2x64, window 40", {8, 2, 64}, 40},
           {"decode_attention mqa 4/1x128", {4, 1, 128}, 0},
           {"decode_attention gqa 32/8x128, window 64", {32, 8, 128}, 64},
           {"decode_attention mha 6x32", {6, 6, 32}, 0},
           {"decode_attention mha 3x16, window 5", {3, 3, 16}, 5}}) {
    for (const Backend& backend : backends) {
      report.check(name, backend.name(),
                   [&] { return decode_attention_error(shape, window, backend); });
    }
  }
}

// Over a vocabulary of the usual size, and over rows with many equal logits.
void check_filters(Report& report, const std::vector<at::Device>& devices) {
  constexpr std::int64_t kVocabulary = 151'936;
  for (const auto& [kind_name, kind] :
       std::vector<std::pair<std::string, LogitKind>>{{"normal", LogitKind::kNormal},
                                                      {"flat", LogitKind::kFlat},
                                                      {"peaked", LogitKind::kPeaked},
                                                      {"two values", LogitKind::kTwoValues},
                                                      {"equal", LogitKind::kEqual}}) {
    for (const auto& [name, settings] : std::vector<std::pair<std::string, SamplingSettings>>{
             {"top-p 0.95", {.temperature = 0.7, .top_p = 0.95}},
             {"top-k 50", {.top_k = 50}},
             {"min-p 0.1", {.min_p = 0.1}},
             {"all filters", {.temperature = 0.7, .top_p = 0.83, .min_p = 0.05, .top_k = 40}},
             {"top-k 8999, top-p 0.91", {.top_p = 0.91, .top_k = 8999}}}) {
      for (const at::Device& device : devices) {
        report.check(fmt::format("sample {}, {} of {}", name, kVocabulary, kind_name), device.str(),
                     [&] { return sample_error(settings, kind, 6, kVocabulary, device); });
      }
    }
  }
}

void check_sampling(Report& report, const std::vector<at::Device>& devices) {
  for (const at::Device& device : devices)
    report.check("uniform_noise", device.str(), [&] { return uniform_noise_error(device); });
  for (const auto& [name, settings] : std::vector<std::pair<std::string, SamplingSettings>>{
           {"sample", {}},
           {"sample greedy", {.temperature = 0}},
           {"sample temperature 0.6", {.temperature = 0.6}},
           {"sample top-p 0.9", {.top_p = 0.9}},
           {"sample top-k 50", {.top_k = 50}},
           {"sample min-p 0.1", {.min_p = 0.1}},
           {"sample all filters",
            {.temperature = 0.7, .top_p = 0.8, .min_p = 0.05, .top_k = 40}}}) {
    for (const at::Device& device : devices)
      report.check(name, device.str(),
                   [&] { return sample_error(settings, LogitKind::kNormal, 64, 3001, device); });
  }
  check_filters(report, devices);
}

void check_gradients(Report& report, const std::vector<OpCase>& cases,
                     const std::vector<Backend>& backends) {
  for (const OpCase& test : cases) {
    for (const Backend& backend : backends) {
      const bool absent =
          backend.device.is_cuda() &&
          std::ranges::find(test.not_on_gpu, backend.dtype) != test.not_on_gpu.end();
      if (!absent) report.check(test.name, backend.name(), [&] { return error_of(test, backend); });
    }
  }
}

void check_grouped_products(Report& report, const std::vector<Backend>& backends) {
  check_gradients(report, grouped_cases(GroupedCode::kOwn), backends);
  std::vector<Backend> gpus = backends;
  std::erase_if(gpus, [](const Backend& backend) { return !backend.device.is_cuda(); });
  check_gradients(report, grouped_cases(GroupedCode::kTorch), gpus);
#ifdef ANTISD_CUDA
  for (const Backend& backend : gpus) {
    if (backend.dtype != at::kFloat)
      report.check("grouped_linear own, bit for bit", backend.name(),
                   [&] { return grouped_product_error(backend); });
  }
#endif
}

void check_attention(Report& report, const std::vector<Backend>& backends) {
  check_gradients(report, attention_cases(), backends);
  check_gradients(report, ragged_attention_cases(), backends);
#ifdef ANTISD_CUDA
  for (const Backend& backend : backends) {
    if (!backend.device.is_cuda() || backend.dtype == at::kFloat) continue;
    for (const auto& [name, check] : std::vector<std::pair<std::string, AttentionBits>>{
             {"attention ragged, bit for bit", {}},
             {"attention ragged, prefix, bit for bit", {.prefix = 1000}},
             {"attention ragged, window 200, bit for bit", {.window = 200}},
             {"attention ragged, parts of a head, bit for bit", {.limits = {.bytes = 1 << 20}}}}) {
      report.check(name, backend.name(), [&] { return attention_bits_error(check, backend); });
    }
  }
#endif
}

void check_quantizing(Report& report, const std::vector<Backend>& backends) {
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    for (const std::int64_t columns : {1, 64, 200, 1023, 2560}) {
      const char* name = kind == QuantizedKind::kInt8 ? "int8" : "nf4";
      for (const Backend& backend : backends) {
        report.check(fmt::format("quantize {} {} columns", name, columns), backend.name(),
                     [&] { return quantize_error(kind, columns, backend); });
      }
    }
  }
}

int run_op_tests() {
  const std::vector<Backend> backends = find_backends();
  Report report;
  check_sampling(report, devices_of(backends));
  check_optimizer(report, backends);
  check_decoding(report, backends);
  check_gradients(report, layer_cases(), backends);
  check_attention(report, backends);
  check_grouped_products(report, backends);
  check_quantizing(report, backends);
  check_gradients(report, quantized_cases(), backends);
  return report.exit_status();
}

}  // namespace
}  // namespace antisd::inline ops

int main() {
  try {
    return antisd::run_op_tests();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "antisd-optest: %s\n", error.what());
    return 1;
  }
}
