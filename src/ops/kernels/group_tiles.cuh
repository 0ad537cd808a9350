// Rows that are sorted by group (expert), cut into tiles of whole groups, without a table: a block
// finds its tile from the groups' ends alone, so the ends may be unknown when the grid is sized and
// a captured launch stays valid when they change.
//
//   grid: group_tile_slots(rows, groups, 64) slots
//   const GroupTile tile = find_group_tile(ends, groups, 64, slot);
//   if (tile.begin >= tile.end) return;
#pragma once

#include <cstdint>

#include "ops/kernels/formulas.cuh"

namespace antisd::inline ops {

struct GroupTile {
  int group;
  int begin, end;  // its rows; none if begin >= end
};

// `ends`: one past each group's last row; the last one is the number of rows.
ANTISD_FORMULA int group_begin(const std::int32_t* ends, int group) {
  return group == 0 ? 0 : ends[group - 1];
}

// Whether each row has a slot of its own, and the tile that starts there is found in it. Else the
// tiles of group g have the slots from begin / tile_rows + g on: a group from `begin` to `end` has
// at most end / tile_rows - begin / tile_rows + 1 tiles, so no two groups share a slot.
ANTISD_FORMULA bool slot_per_row(int rows, int groups, int tile_rows) {
  return rows <= rows / tile_rows + groups;
}

ANTISD_FORMULA int group_tile_slots(int rows, int groups, int tile_rows) {
  return slot_per_row(rows, groups, tile_rows) ? rows : rows / tile_rows + groups;
}

ANTISD_FORMULA GroupTile find_group_tile(const std::int32_t* ends, int groups, int tile_rows,
                                         int slot) {
  const bool per_row = slot_per_row(ends[groups - 1], groups, tile_rows);
  const auto first_slot = [&](int group) {
    const int begin = group_begin(ends, group);
    return per_row ? begin : begin / tile_rows + group;
  };
  int group = 0, last = groups - 1;  // the last group whose slots start at or before this one
  while (group < last) {
    const int middle = (group + last + 1) / 2;
    if (first_slot(middle) <= slot) {
      group = middle;
    } else {
      last = middle - 1;
    }
  }
  const int step = slot - first_slot(group);
  if (per_row && step % tile_rows != 0) return {group, slot, slot};
  const int begin = group_begin(ends, group) + (per_row ? step : step * tile_rows);
  const int end = begin + tile_rows < ends[group] ? begin + tile_rows : ends[group];
  return {group, begin, end};
}

}  // namespace antisd::inline ops
