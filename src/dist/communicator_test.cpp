#include "dist/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antisd::inline dist {
namespace {

TEST(Communicator, OneProcessKeepsWhatItHas) {
  const std::unique_ptr<Communicator> processes = alone();
  EXPECT_EQ(processes->rank(), 0);
  EXPECT_EQ(processes->size(), 1);
  EXPECT_EQ(sum(*processes, 0.1), 0.1);
  std::vector<double> values = {3, 1, 2};
  processes->sum(values);
  EXPECT_THAT(processes->gather(values), ::testing::ElementsAre(3, 1, 2));
  EXPECT_NO_THROW(refuse_several(*processes));
}

}  // namespace
}  // namespace antisd::inline dist
