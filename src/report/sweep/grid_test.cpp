#include "report/sweep/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace antisd::inline report {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names(const Grid& grid) {
  std::vector<std::string> all;
  for (const GridRun& run : grid.runs())
    all.push_back(run.name);
  return all;
}

TEST(Grid, EveryCombinationOnce) {
  Grid grid;
  grid.add("method.name", "grpo,antisd");
  grid.add_assignment("optim.lr=1e-5,5e-5");
  grid.add("train.seed", "0-1,7");
  const std::vector<GridRun> runs = grid.runs();
  ASSERT_EQ(runs.size(), 12u);
  EXPECT_EQ(runs[0].name, "grpo-lr1e-5-seed0");
  EXPECT_EQ(runs[11].name, "antisd-lr5e-5-seed7");
  EXPECT_EQ(runs[11].arm, "antisd-lr5e-5");
  EXPECT_EQ(runs[11].seed, "7");
  EXPECT_THAT(runs[11].assignments,
              ElementsAre("method.name=antisd", "optim.lr=5e-5", "train.seed=7"));
}

TEST(Grid, CommasInsideAListBelongToTheValue) {
  Grid grid;
  grid.add_assignment("data.train=[a.jsonl,b.jsonl],[\"c,d.jsonl\"]");
  const std::vector<GridRun> runs = grid.runs();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_THAT(runs[0].assignments, ElementsAre("data.train=[a.jsonl,b.jsonl]"));
  EXPECT_THAT(runs[1].assignments, ElementsAre("data.train=[\"c,d.jsonl\"]"));
  EXPECT_THAT(names(grid), ElementsAre("train_a.jsonl_b.jsonl", "train_c_d.jsonl"));
}

TEST(Grid, OneValueIsSetButNotNamed) {
  Grid grid;
  grid.add_assignment("train.steps=20");
  grid.add("train.seed", "3");
  EXPECT_THAT(names(grid), ElementsAre("run-seed3"));
  EXPECT_THAT(grid.runs()[0].assignments, ElementsAre("train.steps=20", "train.seed=3"));
}

TEST(Grid, ValuesThatLookAlikeAsFilesStayApart) {
  Grid grid;
  grid.add_assignment("reward.command=a b,a/b");
  EXPECT_THAT(names(grid), ElementsAre("command_a_b", "command_a_b_2"));
}

TEST(Grid, RefusesWhatMakesNoGrid) {
  Grid grid;
  EXPECT_THROW(grid.add_assignment("optim.lr"), InputError);
  EXPECT_THROW(grid.add("train.seed", "4-2"), InputError);
  EXPECT_THROW(grid.add("train.seed", "a"), InputError);
  EXPECT_THROW(grid.add("train.seed", "0-100000"), InputError);
  EXPECT_THROW(grid.add("optim.lr", "1,,2"), InputError);
  EXPECT_THROW(grid.add("optim.lr", "1,1"), InputError);
  grid.add("optim.lr", "1");
  EXPECT_THROW(grid.add("optim.lr", "2"), InputError);
}

}  // namespace
}  // namespace antisd::inline report
