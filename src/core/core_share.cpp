#include "core/core_share.h"

#include <algorithm>
#include <atomic>

namespace antisd::inline core {
namespace {

std::atomic<int> sharing_processes = 1, cores_together = 0;

}  // namespace

int core_share(int own, int processes, int together) {
  if (together == 0) together = own;
  return std::max(1, std::min(own, together / std::max(1, processes)));
}

void share_cores(int processes, int together) {
  sharing_processes = processes;
  cores_together = together;
}

int own_share(int own) {
  return core_share(own, sharing_processes, cores_together);
}

}  // namespace antisd::inline core
