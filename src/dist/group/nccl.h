// NCCL for GPU memory; only in builds with CUDA.
#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace antisd::inline dist {

// A name for this thread's current GPU that no other GPU has.
std::string own_gpu();

// All ranks call it at the same time, each with a GPU of its own as its current device.
c10::intrusive_ptr<c10d::Backend> join_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int size);

}  // namespace antisd::inline dist
