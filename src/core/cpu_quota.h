// The number of cores that control groups allow: a container limited to two cores still sees all 64
// of its host.
//
//   if (const std::optional<double> cores = cpu_quota()) ...   // 1.5
#pragma once

#include <filesystem>
#include <optional>

namespace antisd::inline core {

// The smallest quota of this process's groups and their parents, for versions 1 and 2; nothing if
// none is set. `membership` is a file like /proc/self/cgroup, `root` the directory of the groups.
std::optional<double> cpu_quota(const std::filesystem::path& membership = "/proc/self/cgroup",
                                const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace antisd::inline core
