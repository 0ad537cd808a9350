// What a run does to fit in memory where its configuration leaves that open: dist.shard,
// optim.offload and model.gradient_checkpointing.
//
//   const ShardedRun run{config, model.shape(), device, dtype};
//   const auto tell = [&](const std::string& text) { recorder.info(text); };
//   const ShardOptions shard = choose_shards(run, place, ranks, tell);
//   const std::size_t kept = choose_kept_layers(run, ranks, shard, tell);
#pragma once

#include <functional>
#include <string>

#include "config/run_config.h"
#include "dist/communicator.h"
#include "dist/place.h"
#include "model/model_shape.h"
#include "optim/adamw.h"

namespace antisd::inline cli {

struct ShardedRun {
  const RunConfig& config;
  const ModelShape& shape;
  at::Device device;
  at::ScalarType dtype;
  const ModelShape* teacher = nullptr;  // of method.teacher.path, not loaded yet
};

// All ranks call it, after each has loaded the weights, and get the same. With auto it is the first
// form whose memory plan fits every rank (chosen_form), and `tell` says why. Where not even divided
// weights fit, which are whole while the run samples, they stay divided for good. InputError if the
// host is too small for the optim.offload that is set.
ShardOptions choose_shards(const ShardedRun& run, const Place& place, Communicator& ranks,
                           const std::function<void(const std::string&)>& tell);

// The number of layers, the last ones, whose activations an update keeps; the backward pass
// recomputes the others. All ranks call it after choose_shards(), before the optimizer's state is
// there, and get the same. With auto it is the most that the memory plan allows on the rank with
// least memory, and `tell` says so. A run that is resumed on another machine may keep more or
// fewer: on a CPU that changes no bit, since a recomputed value is made by the same operations; on
// a GPU it may, where the library takes another algorithm for a product.
std::size_t choose_kept_layers(const ShardedRun& run, Communicator& ranks,
                               const ShardOptions& shard,
                               const std::function<void(const std::string&)>& tell);

}  // namespace antisd::inline cli
