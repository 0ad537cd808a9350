// What the ranks of a run divide: dist.shard, or what fits where it is auto.
//
//   const ShardOptions shard = choose_shards({config, model.shape(), device, dtype}, place, ranks,
//                                            [&](const std::string& text) { recorder.info(text);
//                                            });
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
};

// All ranks call it, after each has loaded the weights, and get the same. With auto it is the first
// of optimizer, gradients and weights whose memory plan fits every rank, and `tell` says why. Where
// not even weights fit, which are whole while the run samples, they stay divided for good.
ShardOptions choose_shards(const ShardedRun& run, const Place& place, Communicator& ranks,
                           const std::function<void(const std::string&)>& tell);

}  // namespace antisd::inline cli
