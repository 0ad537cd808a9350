#include "report/series.h"

#include <gmock/gmock.h>

#include "report/testing.h"

namespace antisd::inline report {
namespace {

using ::testing::ElementsAre;

NamedConfig named(const std::string& name, const std::string& method, int seed,
                  const std::string& more = "") {
  return {name, method, flatten_toml(testing::config_text(method, seed, more), "test")};
}

TEST(Series, RunsThatDifferOnlyInTheSeed) {
  const std::vector<NamedConfig> runs = {
      named("runs/grpo-seed0", "grpo", 0),
      named("runs/antisd-0", "antisd", 0),
      named("runs/grpo-seed1", "grpo", 1),
      named("runs/antisd-1", "antisd", 1, "[checkpoint]\nkeep = 7\n"),
      named("runs/antisd-long", "antisd", 1, "[optim]\nlr = 1e-5\n"),
      {"nothing known", "", {}},
      {"nothing known either", "", {}},
  };
  const std::vector<Series> series = group_by_seed(runs);
  ASSERT_EQ(series.size(), 5u);
  EXPECT_EQ(series[0].name, "runs/grpo (2 seeds)");
  EXPECT_THAT(series[0].runs, ElementsAre(0, 2));
  EXPECT_EQ(series[1].name, "runs/antisd (2 seeds)");
  EXPECT_THAT(series[1].runs, ElementsAre(1, 3));
  EXPECT_EQ(series[2].name, "runs/antisd-long");
  EXPECT_THAT(series[3].runs, ElementsAre(5));
  EXPECT_THAT(series[4].runs, ElementsAre(6));
}

TEST(Series, SeedsOfSeveralDigitsAreNoPartOfTheName) {
  const std::vector<NamedConfig> runs = {
      named("grpo-seed10", "grpo", 10),        named("grpo-seed11", "grpo", 11),
      named("antisd-0.93-1", "antisd", 1),     named("antisd-0.93-12", "antisd", 12),
      named("qwen3-s100", "opd", 100),         named("qwen3-s9", "opd", 9),
      named("sd-90", "sd", 3, "[a]\nb = 1\n"), named("sd-90-again", "sd", 4, "[a]\nb = 1\n")};
  const std::vector<Series> series = group_by_seed(runs);
  ASSERT_EQ(series.size(), 4u);
  EXPECT_EQ(series[0].name, "grpo (2 seeds)");
  EXPECT_EQ(series[1].name, "antisd-0.93 (2 seeds)");
  EXPECT_EQ(series[2].name, "qwen3 (2 seeds)");
  EXPECT_EQ(series[3].name, "sd-9 (2 seeds)") << "noughts go, as they always did";
}

TEST(Series, TheSameSeedTwiceIsNoSeedMore) {
  const std::vector<NamedConfig> runs = {named("a", "grpo", 0), named("b", "grpo", 0),
                                         named("c", "grpo", 1)};
  const std::vector<Series> series = group_by_seed(runs);
  ASSERT_EQ(series.size(), 2u);
  EXPECT_THAT(series[0].runs, ElementsAre(0, 2));
  EXPECT_EQ(series[0].name, "grpo (2 seeds)") << "names with nothing in common";
  EXPECT_THAT(series[1].runs, ElementsAre(1));
}

TEST(Series, KeysThatDiffer) {
  const std::vector<NamedConfig> runs = {
      named("a", "grpo", 0), {"unread", "", {}}, named("b", "antisd", 0, "[optim]\nlr = 1e-5\n")};
  const std::vector<ConfigDifference> differences = config_differences(runs);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].key, "method.name");
  EXPECT_THAT(differences[0].values, ElementsAre("'grpo'", "", "'antisd'"));
  EXPECT_EQ(differences[1].key, "optim.lr");
  EXPECT_THAT(differences[1].values, ElementsAre("", "", "1e-05"));
  EXPECT_TRUE(config_differences(std::span(runs).first(2)).empty());
}

TEST(ConfigText, FlatAndPlain) {
  const ConfigText config =
      flatten_toml("[a.b]\nc = \"x y\"\nd = [1, 2]\ne = {f = 1}\n[g]\nh = true\n", "test");
  EXPECT_EQ(plain_value(config, "a.b.c"), "x y");
  EXPECT_EQ(config.at("g.h"), "true");
  EXPECT_EQ(config.size(), 4u);
  EXPECT_EQ(plain_value(config, "absent"), "");
}

}  // namespace
}  // namespace antisd::inline report
