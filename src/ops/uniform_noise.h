// Noise for sampling: one uniform number per sequence of a decode step, drawn on the step's device.
// Row i is CounterRng::uniform of its place, bit for bit, on every device, so a sampled token does
// not depend on the device, the batch or the order.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/rng.h"

namespace antisd::inline ops {

// places: int32 [n, 4], contiguous; a row is (position, sample, prompt, step), the order of
// counter_of(). Returns fp64 [n] in [0, 1) on the device of `places`; on a GPU it is ready in the
// current stream's order.
at::Tensor uniform_noise(const CounterRng& rng, const at::Tensor& places);

}  // namespace antisd::inline ops
