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

// `ends`: one past each group's last row.
ANTISD_FORMULA int group_begin(const std::int32_t* ends, int group) {
  return group == 0 ? 0 : ends[group - 1];
}

// The tiles of group g have the slots from begin / tile_rows + g on. A group from `begin` to `end`
// has at most end / tile_rows - begin / tile_rows + 1 tiles, so no two groups share a slot.
ANTISD_FORMULA int group_tile_slots(int rows, int groups, int tile_rows) {
  return rows / tile_rows + groups;
}

ANTISD_FORMULA GroupTile find_group_tile(const std::int32_t* ends, int groups, int tile_rows,
                                         int slot) {
  int group = 0, last = groups - 1;  // the group is the last one whose slots start at or before it
  while (group < last) {
    const int middle = (group + last + 1) / 2;
    if (group_begin(ends, middle) / tile_rows + middle <= slot) {
      group = middle;
    } else {
      last = middle - 1;
    }
  }
  const int first = group_begin(ends, group);
  const int begin = first + (slot - (first / tile_rows + group)) * tile_rows;
  const int end = begin + tile_rows < ends[group] ? begin + tile_rows : ends[group];
  return {group, begin, end};
}

}  // namespace antisd::inline ops
