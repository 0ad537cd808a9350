#include "ops/grouped_linear.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/kernels/group_tiles.cuh"
#include "ops/kernels/tile_layout.cuh"

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
    const unsigned most = 1 + random() % (round % 2 == 0 ? 3 : 60);
    std::int32_t end = 0;
    for (std::int32_t& value : ends) {
      // A third of the groups are empty, one in ten is large.
      const unsigned kind = random() % 30;
      end += static_cast<std::int32_t>(kind < 10 ? 0 : random() % (kind < 13 ? 10 * most : most));
      value = end;
    }
    const int tile_rows = 1 << random() % 8;
    const int groups = static_cast<int>(ends.size());
    ASSERT_LE(group_tile_slots(end, groups, tile_rows), std::min(end, end / tile_rows + groups));
    ASSERT_EQ(found_tiles(ends, tile_rows), plain_tiles(ends, tile_rows))
        << ends.size() << " groups, tiles of " << tile_rows;
  }
}

// A warp's registers, two elements each.
using WarpWord = std::array<std::array<int, 2>, 32>;

// An operand of 64 rows, 64 deep, in memory as the kernel keeps it; element (row, depth) is
// values(row, depth).
template <Along kAlong, typename Values>
std::vector<int> part_of(const Values& values) {
  std::vector<int> part(64 * 64);
  for (int row = 0; row < 64; ++row) {
    for (int depth = 0; depth < 64; ++depth) {
      const int line = kAlong == Along::kSide ? depth : row;
      const int along = kAlong == Along::kSide ? row : depth;
      part[part_place<64>(line, along / 8) + along % 8] = values(row, depth);
    }
  }
  return part;
}

// The instruction ldmatrix.x4 as PTX defines it, with .trans for kSide.
template <Along kAlong, bool kSideFirst>
std::array<WarpWord, 4> load_quarters(const std::vector<int>& part, int side, int depth) {
  std::array<WarpWord, 4> words;
  for (int matrix = 0; matrix < 4; ++matrix) {
    std::set<int> banks;  // of 16 bytes
    const auto element = [&](int row, int column) {
      const int place = quarter_place<kAlong, 64, kSideFirst>(8 * matrix + row, side, depth);
      banks.insert(place / 8 % 8);
      return part[place + column];
    };
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 2; ++i) {
        const int across = lane % 4 * 2 + i;
        words[matrix][lane][i] =
            kAlong == Along::kSide ? element(across, lane / 4) : element(lane / 4, across);
      }
    }
    EXPECT_EQ(banks.size(), 8u) << "rows of one matrix share a bank";
  }
  return words;
}

// Element (row, depth) of the operand a of mma.m16n8k16, and (depth, column) of b, as PTX defines
// the lanes that hold them.
int element_of_a(const std::array<WarpWord, 4>& a, int row, int depth) {
  return a[row / 8 + depth / 8 * 2][row % 8 * 4 + depth % 8 / 2][depth % 2];
}
int element_of_b(const WarpWord& b0, const WarpWord& b1, int depth, int column) {
  return (depth < 8 ? b0 : b1)[column * 4 + depth % 8 / 2][depth % 2];
}

template <Along kAlong>
void expect_operands_in_place() {
  const auto values = [](int row, int depth) { return 100 * row + depth; };
  const std::vector<int> part = part_of<kAlong>(values);
  for (int side = 0; side < 64; side += 16) {
    for (int depth = 0; depth < 64; depth += 16) {
      const auto a = load_quarters<kAlong, true>(part, side, depth);
      const auto b = load_quarters<kAlong, false>(part, side, depth);
      for (int i = 0; i < 16; ++i) {
        for (int k = 0; k < 16; ++k) {
          ASSERT_EQ(element_of_a(a, i, k), values(side + i, depth + k));
          const int pair = i / 8 * 2;  // two products of 8 columns
          ASSERT_EQ(element_of_b(b[pair], b[pair + 1], k, i % 8), values(side + i, depth + k));
        }
      }
    }
  }
}

TEST(TileLayout, LanesHoldTheElementsThatTheTensorCoreMultiplies) {
  expect_operands_in_place<Along::kDepth>();
  expect_operands_in_place<Along::kSide>();
}

template <int Width>
void expect_places_of_their_own() {
  std::set<int> places;
  for (int row = 0; row < 32; ++row) {
    for (int pack = 0; pack < Width / 8; ++pack)
      places.insert(part_place<Width>(row, pack));
    // Rows from a multiple of 8 on, one pack of each: all banks.
    for (int pack = 0; row % 8 == 0 && pack < Width / 8; ++pack) {
      std::set<int> banks;
      for (int i = 0; i < 8; ++i)
        banks.insert(part_place<Width>(row + i, pack) / 8 % 8);
      EXPECT_EQ(banks.size(), 8u) << Width << " " << row << " " << pack;
    }
  }
  EXPECT_EQ(std::ssize(places), 32 * Width / 8);
  EXPECT_EQ(*places.rbegin(), 32 * Width - 8);
}

TEST(TileLayout, EveryPackHasAPlaceAndNeighbouringRowsUseDifferentBanks) {
  expect_places_of_their_own<32>();
  expect_places_of_their_own<64>();
  expect_places_of_their_own<128>();
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
