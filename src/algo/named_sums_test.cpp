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

TEST(NamedSums, AMessageCarriesEveryNumberOfEveryName) {
  NamedSums one, two, all;
  one["actor/\xc3\xa9t\xc3\xa9"].add(-2.5);
  one["nothing"];
  two["clipped"].add_sum(3, 6);
  two["actor/\xc3\xa9t\xc3\xa9"].add(0.1);
  std::vector<double> messages = one.message();
  const std::vector<double> second = two.message();
  messages.insert(messages.end(), second.begin(), second.end());
  all.add_message(messages);
  ASSERT_EQ(all.values().size(), 3u);
  EXPECT_EQ(all.values()[1].first, "nothing");
  EXPECT_EQ(all.at("nothing").count, 0);
  const Moments& sum = all.at("actor/\xc3\xa9t\xc3\xa9");
  EXPECT_EQ(sum.count, 2);
  EXPECT_EQ(sum.sum, -2.5 + 0.1);
  EXPECT_EQ(sum.sum_squares, 6.25 + 0.1 * 0.1);
  EXPECT_EQ(sum.min, -2.5);
  EXPECT_EQ(sum.max, 0.1);
  EXPECT_EQ(sum.negative, 1);
  EXPECT_EQ(all.at("clipped").sum, 3);
  EXPECT_EQ(all.at("clipped").count, 6);
  messages.pop_back();
  EXPECT_THROW(NamedSums().add_message(messages), CheckFailure);  // cut short
}

}  // namespace
}  // namespace antisd::inline algo
