// Which correct rollout of the group a rollout's teacher is shown: never itself, drawn uniformly,
// a function of (seed, step, prompt, i) alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/rng.h"

namespace antisd::inline context {

enum class PeerMode {
  kRollout,  // a draw for each rollout
  kGroup,    // one for the group, and a second for the rollout that is the first: nearly all of a
             // group then share one prefix
};

class PeerPicker {
 public:
  PeerPicker(std::uint64_t seed, PeerMode mode) : rng_(seed, RandomStream::kPeer), mode_(mode) {}

  // The peer of rollout i, of those that may be shown; nothing where there is no other.
  std::optional<std::size_t> pick(std::uint32_t step, std::uint32_t prompt,
                                  const std::vector<bool>& may_be_shown, std::size_t i) const;

 private:
  CounterRng rng_;
  PeerMode mode_;
};

}  // namespace antisd::inline context
