// Seconds of a training step's phases on a machine: work is cut and dealt out to ranks as the
// trainer does it, and each rank's share takes what PassTime says.
//
//   const StepModel model(config, shape, machine, {16, 16, Shard::kGradients});
//   const StepTime step = model.step(lengths, /*cache_bytes=*/40e9);
#pragma once

#include <cstdint>
#include <vector>

#include "algo/method.h"
#include "config/run_config.h"
#include "plan/sampling_time.h"
#include "trainer/holdings.h"

namespace antisd::inline plan {

struct Machine {
  Card card;
  int gpus = 1, per_node = 1;
  double network = 45e9;  // bytes per second of a GPU to other nodes, each way
};

// Seconds that ranks spend sending: beside computation, or waited for.
struct Traffic {
  double hidden = 0, exposed = 0;
  Traffic& operator+=(const Traffic& other);
};

struct StepTime {
  SamplingTime sampling;          // of the slowest rank
  double sampling_mean = 0;       // over the ranks
  double sampling_unbounded = 0;  // of the slowest with a cache for all of its responses
  double sampling_start = 0;
  double scoring = 0, update = 0;  // of the slowest rank; without what ranks wait for each other
  double streaming = 0;            // of the update: what a state on the host adds
  Traffic traffic;
  std::int64_t micro_batches = 0, rounds = 0;

  double sampling_seconds() const { return sampling_start + sampling.seconds(); }
  double seconds() const { return sampling_seconds() + scoring + update + traffic.exposed; }
};

class StepModel {
 public:
  // Borrows config and shape. `kept_layers`: MemoryPlan's.
  StepModel(const RunConfig& config, const ModelShape& shape, const Machine& machine,
            const RankDivision& ranks, std::size_t kept_layers = 0);

  StepTime step(const Lengths& lengths, double cache_bytes) const;
  // Seconds of one evaluation. Benchmarks that are neither files here nor known by name are left
  // out; their names go to `unknown`.
  double evaluation(const Lengths& lengths, double cache_bytes,
                    std::vector<std::string>& unknown) const;

  const PassTime& pass_time() const { return time_; }

 private:
  std::int64_t longest() const;
  SamplingTime sample(std::span<const GroupLengths> groups, double cache_bytes,
                      std::int64_t longest) const;
  void add_sampling(const std::vector<GroupLengths>& groups, double cache_bytes,
                    StepTime& step) const;
  double score_all(const std::vector<PassSequence>& sequences) const;
  void add_scoring(const std::vector<GroupLengths>& groups, StepTime& step) const;
  void add_update(const std::vector<GroupLengths>& groups, StepTime& step) const;
  double pass_seconds(std::span<const PassSequence> own, std::span<const PassSequence> shown) const;
  double host_bytes() const;
  // What a pass of this many seconds waits for layers that stay divided between updates.
  double fetch_wait(double pass) const;
  // Of `bytes` that each of `size` neighbouring ranks sends in equal parts to all of them.
  double spread(double bytes, int size) const;

  const RunConfig& config_;
  const ModelShape& shape_;
  Method method_;
  Machine machine_;
  RankDivision ranks_;
  Holdings held_;
  PassTime time_;
  double recomputed_;  // share of the layers
};

}  // namespace antisd::inline plan
