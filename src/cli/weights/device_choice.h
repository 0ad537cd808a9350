// --device -> what the tensor library calls it.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace antisd::inline cli {

// "cpu", "cuda", "cuda:N", or "auto": a GPU where there is one. InputError for one that is not
// here.
at::Device choose_device(const std::string& name);

}  // namespace antisd::inline cli
