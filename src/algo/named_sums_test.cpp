#include "algo/named_sums.h"

#include <gmock/gmock.h>

#include "core/check.h"

namespace antisd::inline algo {
namespace {

TEST(NamedSums, AddUpByNameInTheOrderOfTheirFirstUse) {
  NamedSums one, two;
  Moments& loss = one["loss"];
  for (int i = 0; i < 100; ++i)
    one["sum " + std::to_string(i)].add(i);
  loss.add(2);  // the reference outlived those that came after it
  two["u"].add(-1);
  two["loss"].add(4);
  two["clipped"].add_sum(3, 6);  // of six tokens three
  one.add(two);
  EXPECT_EQ(one.mean("loss"), 3);
  EXPECT_EQ(one.at("loss").max, 4);
  EXPECT_EQ(one.mean("sum 99"), 99);
  EXPECT_EQ(one.mean("clipped"), .5);
  EXPECT_TRUE(std::isnan(one.mean("unknown")));
  EXPECT_EQ(one.values().front().first, "loss");
  EXPECT_EQ(one.values().back().first, "clipped");
  EXPECT_EQ(one.values().size(), 103u);
}

}  // namespace
}  // namespace antisd::inline algo
