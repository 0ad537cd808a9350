#include "trainer/memory_peaks.h"

#include <algorithm>

#include <ATen/DeviceAccelerator.h>
#include <sys/resource.h>

namespace antisd::inline trainer {
namespace {

double tensor_peak(at::DeviceIndex device) {
  const auto stats = at::accelerator::getDeviceStats(device);
  return static_cast<double>(stats.allocated_bytes[0].peak) / (1 << 30);
}

at::DeviceIndex index_of(at::Device device) {
  return device.has_index() ? device.index() : at::DeviceIndex(0);
}

}  // namespace

std::optional<double> MemoryPeaks::lap() {
  if (!device_.is_cuda()) return std::nullopt;
  const double peak = tensor_peak(index_of(device_));
  most_ = std::max(most_, peak);
  at::accelerator::resetPeakStats(index_of(device_));
  return peak;
}

double MemoryPeaks::most() {
  if (device_.is_cuda()) return most_ = std::max(most_, tensor_peak(index_of(device_)));
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);  // of KiB
}

}  // namespace antisd::inline trainer
