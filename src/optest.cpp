// antisd-optest: every op on every backend against its CPU reference. One line an op and backend;
// exit status 1 where any differs. On a machine without a GPU it checks the CPU alone and says so.
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <ATen/ops/randint.h>
#include <fmt/format.h>

#include "core/error.h"
#include "ops/device.h"
#include "ops/uniform_noise.h"

namespace antisd {
namespace {

struct OpTest {
  std::string name;
  // The largest error on `device` against the CPU reference, in units of the op's tolerance.
  std::function<double(at::Device device)> error;
};

double uniform_noise_error(at::Device device) {
  const CounterRng rng(11, RandomStream::kSampling);
  const at::Tensor places = at::randint(0, 1 << 30, {10'007, 4}, at::kInt);
  const at::Tensor result = uniform_noise(rng, places.to(device)).to(at::kCPU);
  std::int64_t different = 0;
  for (std::int64_t row = 0; row < places.size(0); ++row) {
    const auto* p = places.const_data_ptr<std::int32_t>() + row * 4;
    const auto word = [&](int i) { return static_cast<std::uint32_t>(p[i]); };
    const double expected =
        rng.uniform({.step = word(3), .prompt = word(2), .sample = word(1), .position = word(0)});
    if (result.const_data_ptr<double>()[row] != expected) ++different;
  }
  return static_cast<double>(different) * 2;  // must agree bit for bit
}

int run_op_tests() {
  const std::vector<OpTest> tests = {{"uniform_noise", uniform_noise_error}};
  const TensorLibraryInfo library = describe_tensor_library();
  std::vector<at::Device> devices = {at::kCPU};
  if (library.gpus.empty()) {
    fmt::print("no GPU here ({}): CPU alone\n",
               library.built_with_cuda ? library.gpu_problem : "built without CUDA");
  } else {
    devices.emplace_back(at::kCUDA, 0);
    fmt::print("cuda:0: {}\n", library.gpus[0].description);
  }
  int failed = 0, passed = 0;
  for (const OpTest& test : tests) {
    for (const at::Device& device : devices) {
      const double error = test.error(device);
      const bool good = error <= 1;
      ++(good ? passed : failed);
      fmt::print("{:<6} {:<24} {:<8} error {:.3g} of its tolerance\n", good ? "ok" : "FAILED",
                 test.name, device.str(), error);
    }
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace antisd

int main() {
  try {
    return antisd::run_op_tests();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "antisd-optest: %s\n", error.what());
    return 1;
  }
}
