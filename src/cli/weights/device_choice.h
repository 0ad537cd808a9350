// The device that --device names.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace antisd::inline cli {

// "cpu", "cuda", "cuda:N", or "auto": a GPU if there is one. InputError for a device that is
// absent.
at::Device choose_device(const std::string& name);

}  // namespace antisd::inline cli
