// The cores that a control group grants: a container of two cores on a host of sixty-four sees all
// of them and may use two.
//
//   if (const std::optional<double> cores = cpu_quota()) ...   // 1.5
#pragma once

#include <filesystem>
#include <optional>

namespace antisd::inline core {

// The smallest quota of this process's groups and of those above them, versions 1 and 2; nothing
// where none is set. `membership` is a file such as /proc/self/cgroup, `root` where groups are.
std::optional<double> cpu_quota(const std::filesystem::path& membership = "/proc/self/cgroup",
                                const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace antisd::inline core
