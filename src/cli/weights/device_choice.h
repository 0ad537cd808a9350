// The device that --device names, for a process or for each rank of a node.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace antisd::inline cli {

// What --device means for a rank that sees `visible` GPUs: "cpu" or "cuda:N". Each rank of a node
// has its own GPU; several share one only where "cuda:N" says so. InputError for more ranks than
// GPUs.
std::string device_of_rank(const std::string& requested, int local_rank, int visible);

// "cpu", "cuda", "cuda:N", or "auto": a GPU if there is one. InputError for a device that is
// absent.
at::Device choose_device(const std::string& name, int local_rank = 0);

// For --processes gpus.
int visible_gpus();

}  // namespace antisd::inline cli
