#include "report/sweep/run_figures.h"

#include <gtest/gtest.h>

namespace antisd::inline report {
namespace {

TEST(RunFigures, CountsByHand) {
  MetricTable table;
  table.add(
      R"({"training/global_step":0,"val-core/a/acc/mean@4":0.1,"val-core/b/acc/mean@1":0.3})");
  table.add(R"({"training/global_step":1,"critic/rewards/mean":0.5,"antisd/lambda":0})");
  table.add(R"({"training/global_step":2,"critic/rewards/mean":0.5,"antisd/lambda":0.5})");
  table.add(R"({"training/global_step":3,"critic/rewards/mean":0.5,"antisd/lambda":0})");
  table.add(
      R"({"training/global_step":4,"critic/rewards/mean":0.6,"antisd/lambda":0.5,)"
      R"("response_length/mean":12,"val-core/a/acc/mean@4":0.4,"val-core/a/acc/pass@2":0.9})");
  const RunFigures figures = figures_of(table);
  EXPECT_EQ(figures.step, 4);
  EXPECT_DOUBLE_EQ(figures.reward, 0.6);
  EXPECT_DOUBLE_EQ(figures.tokens, 12);
  EXPECT_EQ(figures.steps_open, 2);
  EXPECT_EQ(figures.gate_closings, 1);
  ASSERT_EQ(figures.accuracy.size(), 2u);
  EXPECT_DOUBLE_EQ(figures.accuracy[0].average, 0.2);
  EXPECT_EQ(figures.accuracy[1].step, 4);
  EXPECT_DOUBLE_EQ(figures.accuracy[1].average, 0.4);
}

}  // namespace
}  // namespace antisd::inline report
