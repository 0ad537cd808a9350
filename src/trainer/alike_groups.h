// Steps whose groups are all alike: where every response of a group has the same reward, its
// advantage is 0, and a run may go on for days without learning from one reward.
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

  // A warning after 5 such steps in a row, and again after 50, 500, ... of them. A step without two
  // grades in any group says nothing.
  std::optional<std::string> observe(const ResponseBatch& batch);

 private:
  bool counts_rewards_;  // of the method: others learn without them
  bool has_term_;
  std::int64_t steps_ = 0;  // in a row
  std::int64_t next_ = 5;   // when to speak
};

}  // namespace antisd::inline trainer
