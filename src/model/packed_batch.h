// Sequences concatenated without padding, with their positions and boundaries. Sequences with the
// same leading tokens share those rows: a prefix is computed once, and attention reads its keys and
// values for each sequence that continues it.
//
//   const std::vector<std::vector<std::int32_t>> sequences = {{1, 2, 3, 4}, {1, 2, 9}};
//   const PackedBatch batch = pack(sequences, at::kCPU);  // 5 rows: 1 2, 3 4, 9
//   const at::Tensor hidden = model.hidden_states(batch);
//   hidden[batch.rows[1][2]];  // after token 9 of the second sequence
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/attention.h"

namespace antisd::inline model {

struct PackedBatch {
  at::Tensor ids;        // int64 [tokens]
  at::Tensor positions;  // int32 [tokens], from 0 within each sequence
  AttentionLayout layout;
  // rows[s][i]: the packed row of token i of sequence s.
  std::vector<std::vector<std::int64_t>> rows;
  std::int64_t longest_sequence = 0;
  std::int32_t smallest_id = 0, largest_id = 0;  // on the host, to check them without synchronising

  std::int64_t tokens() const { return ids.size(0); }
};

struct PackOptions {
  // The shortest common prefix worth sharing: below it the extra segment costs more than it saves.
  std::int64_t least_shared = 16;
  bool share = true;
  // Of a backward pass. In a fixed order nothing is shared: the gradients of shared rows are added
  // in any.
  SumOrder sums = SumOrder::kAny;
};

PackedBatch pack(std::span<const std::vector<std::int32_t>> sequences, at::Device device,
                 PackOptions options = {});

}  // namespace antisd::inline model
