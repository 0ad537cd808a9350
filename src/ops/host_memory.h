// Memory of the host that a GPU copies from and to at full speed while it computes: pinned pages.
//
//   check_host_memory(bytes, available_memory(at::kCPU));
//   const at::Tensor moments = host_zeros(elements, at::Device("cuda:0"));
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

// fp32 zeros in the host's memory, for copies from and to `device`. For a CPU that is its own
// memory. For a GPU the pages are pinned, which takes about half a second per GiB; RunError, with
// the setting that asked for it, if the system refuses it.
at::Tensor host_zeros(std::int64_t elements, c10::Device device,
                      const char* setting = "optim.offload");

// Of the host's free memory, bytes that the rest of the program needs: data, rollouts, libraries.
inline constexpr double kHostReserve = 2.0 * (1 << 30);

// InputError if the host has not so many bytes free, beside the reserve, for what optim.offload
// puts there and, if there is one, a teacher at rest. Call it before anything is pinned: the system
// would end the process, or others, in the middle of it.
void check_host_memory(double needed, double available, double teacher = 0);

}  // namespace antisd::inline ops
