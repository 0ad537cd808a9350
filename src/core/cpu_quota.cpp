#include "core/cpu_quota.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace antisd::inline core {
namespace {

namespace fs = std::filesystem;

// The quota of one group. Version 2 has one file, "quota period" in microseconds ("max period":
// none); version 1 has one file for each (-1: none).
std::optional<double> quota_of(const fs::path& group) {
  double quota = 0, period = 0;
  if (std::ifstream both(group / "cpu.max"); both >> quota >> period && quota > 0 && period > 0)
    return quota / period;
  std::ifstream first(group / "cpu.cfs_quota_us"), second(group / "cpu.cfs_period_us");
  if (first >> quota && second >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& membership, const fs::path& root) {
  std::optional<double> least;
  const auto note = [&](const fs::path& top, fs::path group) {
    for (;; group = group.parent_path()) {
      const std::optional<double> found = quota_of(top / group.relative_path());
      if (found) least = std::min(found.value(), least.value_or(*found));
      if (!group.has_relative_path()) return;
    }
  };
  std::ifstream file(membership);
  for (std::string line; std::getline(file, line);) {  // "4:cpu,cpuacct:/group", "0::/group"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      note(root, group);
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      note(root / "cpu", group);
      note(root / controllers, group);
    }
  }
  return least;
}

}  // namespace antisd::inline core
