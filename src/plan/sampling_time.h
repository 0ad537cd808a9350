// Seconds of sampling: the engine's own Scheduler works through responses of known lengths, and
// each of its steps takes what PassTime says.
//
//   const SamplingTime time = simulate_sampling(pass_time, groups, {.pages = 30'000});
#pragma once

#include <cstdint>
#include <span>

#include "plan/lengths.h"
#include "plan/pass_time.h"

namespace antisd::inline plan {

struct SamplingLimits {
  std::int64_t pages = 0;  // of the cache; the scheduler needs room for one sequence
  int slots = 256;
  std::int64_t longest = 32'768;  // tokens of a sequence at most
  std::int64_t prefill_tokens = 8192;
};

struct SamplingTime {
  double decode = 0, prefill = 0;  // seconds
  double longest = 0;              // what the longest response takes by itself
  std::int64_t steps = 0, new_tokens = 0, preemptions = 0;
  double seconds() const { return decode + prefill; }
};

SamplingTime simulate_sampling(const PassTime& time, std::span<const GroupLengths> groups,
                               const SamplingLimits& limits);

}  // namespace antisd::inline plan
