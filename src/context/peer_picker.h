// Which correct rollout of the group is shown to a rollout's teacher: never the rollout itself,
// drawn uniformly from (seed, step, prompt, i) only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/rng.h"

namespace antisd::inline context {

enum class PeerMode {
  kRollout,  // one draw per rollout
  kGroup,    // one draw for the group and a second one for the drawn rollout itself, so that
             // nearly all prompts of a group share a prefix
};

class PeerPicker {
 public:
  PeerPicker(std::uint64_t seed, PeerMode mode) : rng_(seed, RandomStream::kPeer), mode_(mode) {}

  // The peer of rollout i among those that may be shown; nothing if there is no other.
  std::optional<std::size_t> pick(std::uint32_t step, std::uint32_t prompt,
                                  const std::vector<bool>& may_be_shown, std::size_t i) const;

 private:
  CounterRng rng_;
  PeerMode mode_;
};

}  // namespace antisd::inline context
