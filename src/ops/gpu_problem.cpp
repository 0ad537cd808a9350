#include "ops/gpu_problem.h"

#include <charconv>

#include <fmt/format.h>

namespace antisd::inline ops {
namespace {

constexpr int kOldestMajor = 8;  // Ampere: the first with products of bf16
// CUDA 13.0's release notes; any later driver works too.
constexpr const char* kDriver = "install NVIDIA's driver 580 or newer";

std::string cuda_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

bool architecture_runs_on(const GpuCard& card, std::string_view architecture) {
  int number = 0;
  const auto [end, error] =
      std::from_chars(architecture.data(), architecture.data() + architecture.size(), number);
  if (error != std::errc()) return false;
  const std::string_view suffix(end, architecture.data() + architecture.size());
  const int major = number / 10, minor = number % 10;
  if (suffix.starts_with("a")) return card.major == major && card.minor == minor;
  if (card.major == major && card.minor >= minor) return true;
  return suffix.empty() && card.major > major;
}

}  // namespace

std::optional<GpuProblem> machine_problem(const GpuMachine& machine) {
  if (!machine.has_card && !machine.has_driver) return std::nullopt;
  if (!machine.has_driver)
    return GpuProblem{"there is an NVIDIA card, but no driver for it",
                      std::string(kDriver) + "; a container needs the host's (--gpus all)"};
  if (!machine.built_with_cuda)
    return GpuProblem{"there is an NVIDIA card, but this binary has no CUDA",
                      "build with `make CUDA=1` and run build/cuda/antisd"};
  // Drivers support every minor version of their CUDA's major one.
  if (machine.driver_cuda / 1000 < machine.needed_cuda / 1000)
    return GpuProblem{fmt::format("the driver{}{} supports CUDA up to {}, but this binary needs {}",
                                  machine.driver_version.empty() ? "" : " ", machine.driver_version,
                                  cuda_text(machine.driver_cuda), cuda_text(machine.needed_cuda)),
                      kDriver};
  return std::nullopt;
}

bool has_kernels_for(const GpuCard& card, std::string_view architectures) {
  while (!architectures.empty()) {
    const std::size_t space = architectures.find(' ');
    if (architecture_runs_on(card, architectures.substr(0, space))) return true;
    if (space == std::string_view::npos) break;
    architectures.remove_prefix(space + 1);
  }
  return false;
}

std::optional<GpuProblem> card_problem(const GpuCard& card, std::string_view architectures) {
  const std::string name = fmt::format("{} (compute {}.{})", card.name, card.major, card.minor);
  if (card.major < kOldestMajor)
    return GpuProblem{name + " is too old: it has no products of bf16",
                      "use a card with compute 8.0 or newer (Ampere), or --device cpu"};
  if (!has_kernels_for(card, architectures))
    return GpuProblem{
        fmt::format("this binary has no kernels for {}, only for {}", name, architectures),
        "`make CUDA=1` in a new build folder builds for every card since Ampere"};
  return std::nullopt;
}

}  // namespace antisd::inline ops
