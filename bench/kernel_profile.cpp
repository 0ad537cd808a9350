#ifdef ANTISD_TORCH

#include "bench/kernel_profile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>

namespace antisd::bench {

void print_kernel_profile(const std::function<void()>& work, int lines) {
  using torch::profiler::impl::ActivityType;
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<ActivityType> activities = {ActivityType::CUDA};
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
  const auto result = torch::autograd::profiler::disableProfiler();

  struct Total {
    double ms = 0;
    int calls = 0;
  };
  std::map<std::string, Total> totals;
  double all = 0;
  for (const auto& event : result->events()) {
    if (event.deviceType() != c10::DeviceType::CUDA) continue;
    const double ms = static_cast<double>(event.durationNs()) * 1e-6;
    Total& total = totals[event.name()];
    total.ms += ms;
    ++total.calls;
    all += ms;
  }
  std::vector<std::pair<std::string, Total>> sorted(totals.begin(), totals.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
  fmt::print("  kernels {:.2f} ms of {:.2f} ms\n", all, wall.count());
  for (int i = 0; i < std::min<int>(lines, static_cast<int>(sorted.size())); ++i) {
    fmt::print("  {:9.3f} ms {:6} x  {}\n", sorted[i].second.ms, sorted[i].second.calls,
               sorted[i].first.substr(0, 150));
  }
}

}  // namespace antisd::bench

#endif
