// Where the elements of a matrix product's operands lie in shared memory, and which of them a lane
// points to when its warp loads 8 x 8 matrices from there.
#pragma once

#include "ops/kernels/formulas.cuh"

namespace antisd::inline ops {

// What follows each other in an operand's memory: elements along the sum's index, the depth (a row
// in memory is a row of the operand), or elements of neighbouring rows (a row in memory is one step
// of depth).
enum class Along { kDepth, kSide };

// The element at which pack `pack` (of 8 elements, 16 bytes) of a row starts in a part of `Width`
// elements a row. Packs change places within a row so that eight rows' packs of one column lie in
// different banks.
template <int Width>
ANTISD_FORMULA int part_place(int row, int pack) {
  constexpr int kPacks = Width / 8;
  static_assert(kPacks == 4 || kPacks % 8 == 0);
  const int turn = kPacks == 4 ? row / 2 % 4 : row % 8;
  return (row * kPacks + (pack ^ turn)) * 8;
}

// The element that `lane` points to when a warp loads the four 8 x 8 quarters of 16 rows from
// `side` and 16 of depth: of quarter lane / 8 the row lane % 8 in memory. The second quarter is
// eight rows further with kSideFirst, else 8 deeper. Width: of a row in memory.
template <Along kAlong, int Width, bool kSideFirst>
ANTISD_FORMULA int quarter_place(int lane, int side, int depth) {
  const int half = lane / 8 % 2 * 8, other_half = lane / 16 * 8;
  side += kSideFirst ? half : other_half;
  depth += kSideFirst ? other_half : half;
  return kAlong == Along::kSide ? part_place<Width>(depth + lane % 8, side / 8)
                                : part_place<Width>(side + lane % 8, depth / 8);
}

}  // namespace antisd::inline ops
