// --memory-gib of the benchmarks: a smaller card than the one at hand.
#pragma once

#include <ATen/core/Tensor.h>

#include "bench/options.h"

namespace antisd::bench {

void add_memory_option(CLI::App& app, double& gib);

// From now on tensors get at most so many GiB of the device. 0: all of it.
void cap_memory(at::Device device, double gib);

}  // namespace antisd::bench
