// Steps in which no group has different rewards: if all responses of a group have the same reward,
// its advantage is 0, so a run could continue for days without learning from a reward.
//
//   AlikeGroups alike(method);
//   if (const auto warning = alike.observe(batch)) recorder.warn(*warning);
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "algo/method.h"
#include "algo/response.h"

namespace antisd::inline trainer {

class AlikeGroups {
 public:
  explicit AlikeGroups(const Method& method)
      : counts_rewards_(method.group_advantage), has_term_(method.sign != 0) {}

  // Warns after 5 such consecutive steps, and again after 50, 500, ... A step without two grades in
  // any group does not count.
  std::optional<std::string> observe(const ResponseBatch& batch);

 private:
  bool counts_rewards_;  // by the method: others learn without them
  bool has_term_;
  std::int64_t steps_ = 0;  // consecutive
  std::int64_t next_ = 5;   // when to warn next
};

}  // namespace antisd::inline trainer
