// --device and --dtype -> what the tensor library calls them.
#pragma once

#ifdef ANTISD_TORCH

#include <string>

#include <ATen/core/Tensor.h>

namespace antisd {

// "cpu", "cuda", "cuda:N", or "auto": a GPU where there is one. InputError for one that is not
// here.
at::Device choose_device(const std::string& name);

// "fp32", "bf16", or "auto": what the device computes in. InputError where it cannot.
at::ScalarType choose_dtype(const std::string& name, at::Device device);

}  // namespace antisd

#endif
