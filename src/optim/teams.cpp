#include "optim/teams.h"

#include <vector>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline optim {

Teams::Teams(Communicator& ranks, int members)
    : all_(ranks),
      members_(members),
      teams_(ranks.size() / members),
      member_(ranks.rank() % members) {
  if (teams_ * members != ranks.size()) {
    throw InputError(
        fmt::format("{} ranks cannot be divided into nodes of {}", ranks.size(), members),
        {.where = "dist.shard_over",
         .remedy = "start the same number of ranks on every node, or use "
                   "dist.shard_over = \"all\""});
  }
  std::vector<int> own_team, same_member;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (rank / members == ranks.rank() / members) own_team.push_back(rank);
    if (rank % members == member_) same_member.push_back(rank);
  }
  team_ = ranks.among(own_team);
  replicas_ = ranks.among(same_member);
}

std::int64_t Teams::chunk_elements(std::int64_t block_elements) const {
  const std::int64_t unit = all_.size() * kPieceElements;
  return (block_elements + unit - 1) / unit * kPieceElements;
}

at::Tensor Teams::by_rank(const at::Tensor& chunks) const {
  if (members_ == 1 || teams_ == 1) return chunks;  // the same order
  return chunks.view({members_, teams_, -1}).transpose(0, 1).contiguous().view({-1});
}

}  // namespace antisd::inline optim
