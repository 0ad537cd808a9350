// How ranks divide masters and moments. The ranks of a *team* hold one copy of them between them;
// the teams are replicas of each other. Rank n x L + l is member l of team n, with L members per
// team and N teams.
//
// L = 1: every rank holds everything (dist.shard = none). L = all: there is one copy in all
// (optimizer, gradients). L = those of a node: one copy per node (dist.shard_over = node).
//
// A block is cut into N x L chunks, and each rank sums the gradients of one. Member l of every team
// updates chunks [l N, (l + 1) N), which are next to each other: its part. So teams only exchange
// sums, and members only values.
#pragma once

#include <cstdint>
#include <memory>

#include "dist/communicator.h"
#include "model/parameter_store.h"

namespace antisd::inline optim {

class Teams {
 public:
  // All ranks make it together. InputError if `members` does not divide the number of ranks.
  Teams(Communicator& ranks, int members);

  Communicator& all() { return all_; }
  Communicator& team() { return *team_; }          // the members of this rank's team
  Communicator& replicas() { return *replicas_; }  // the same member of every team

  // What this rank, or that member, updates.
  BlockPart part() const { return part_of(member_); }
  BlockPart part_of(int member) const { return {member, members_, teams_}; }
  // The size of a chunk of a block with so many elements; the last chunks may lie behind its end.
  std::int64_t chunk_elements(std::int64_t block_elements) const;
  // [N x L chunks] of a block in the order of the ranks that sum them.
  at::Tensor by_rank(const at::Tensor& chunks) const;

 private:
  Communicator& all_;
  int members_, teams_, member_;
  std::unique_ptr<Communicator> team_, replicas_;
};

}  // namespace antisd::inline optim
