#include "ops/grouped_linear.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/kernels/group_tiles.cuh"

namespace antisd::inline ops {
namespace {

using Tiles = std::vector<std::vector<int>>;  // {group, begin, end}

// Group by group, tile by tile.
Tiles plain_tiles(const std::vector<std::int32_t>& ends, int tile_rows) {
  Tiles tiles;
  int begin = 0;
  for (int group = 0; group < std::ssize(ends); ++group) {
    for (; begin < ends[group]; begin = tiles.back()[2])
      tiles.push_back({group, begin, std::min(begin + tile_rows, ends[group])});
  }
  return tiles;
}

Tiles found_tiles(const std::vector<std::int32_t>& ends, int tile_rows) {
  const int groups = static_cast<int>(ends.size());
  Tiles tiles;
  for (int slot = 0; slot < group_tile_slots(ends.back(), groups, tile_rows); ++slot) {
    const GroupTile tile = find_group_tile(ends.data(), groups, tile_rows, slot);
    if (tile.begin < tile.end) tiles.push_back({tile.group, tile.begin, tile.end});
  }
  return tiles;
}

TEST(GroupTiles, EverySlotFindsItsTileAndNoTileIsMissing) {
  EXPECT_THAT(found_tiles({5}, 2),
              testing::ElementsAre(testing::ElementsAre(0, 0, 2), testing::ElementsAre(0, 2, 4),
                                   testing::ElementsAre(0, 4, 5)));
  EXPECT_THAT(found_tiles({0, 0}, 4), testing::IsEmpty());
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::int32_t> ends(1 + random() % 140);
    const unsigned most = 1 + random() % 60;
    std::int32_t end = 0;
    for (std::int32_t& value : ends) {
      // A third of the groups are empty, one in ten is large.
      const unsigned kind = random() % 30;
      end += static_cast<std::int32_t>(kind < 10 ? 0 : random() % (kind < 13 ? 10 * most : most));
      value = end;
    }
    const int tile_rows = 1 << random() % 8;
    ASSERT_EQ(found_tiles(ends, tile_rows), plain_tiles(ends, tile_rows))
        << ends.size() << " groups, tiles of " << tile_rows;
  }
}

TEST(GroupedCode, TorchIsChosenWhereItHasOneLaunchForAllExperts) {
  for (const int major : {9, 10})
    EXPECT_EQ(choose_grouped_code(major, at::kBFloat16, 2048, 768), GroupedCode::kTorch) << major;
  for (const int major : {8, 12})
    EXPECT_EQ(choose_grouped_code(major, at::kBFloat16, 2048, 768), GroupedCode::kOwn) << major;
  EXPECT_EQ(choose_grouped_code(9, at::kHalf, 2048, 768), GroupedCode::kOwn);
  EXPECT_EQ(choose_grouped_code(9, at::kBFloat16, 2044, 768), GroupedCode::kOwn);
  EXPECT_EQ(choose_grouped_code(9, at::kBFloat16, 2048, 770), GroupedCode::kOwn);
}

}  // namespace
}  // namespace antisd::inline ops
