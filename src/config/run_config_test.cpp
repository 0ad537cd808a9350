#include "config/run_config.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

// The paper's table of hyperparameters.
TEST(RunConfig, DefaultsAreThePapers) {
  const RunConfig c;
  EXPECT_EQ(c.optim.lr, 1e-6);
  EXPECT_EQ(c.train.steps, 200);
  EXPECT_EQ(c.rollout.prompts_per_step, 32);
  EXPECT_EQ(c.rollout.group_size, 8);
  EXPECT_EQ(c.rollout.max_sequence_tokens, 32768);
  EXPECT_EQ(c.loss.clip_low, 0.2);
  EXPECT_EQ(c.loss.kl_coef, 0);
  EXPECT_EQ(c.rollout.temperature, 1.0);
  EXPECT_EQ(c.eval.temperature, 0.7);
  EXPECT_EQ(c.eval.top_p, 0.95);
  EXPECT_EQ(c.eval.n.at("hmmt_feb25"), 32);
  EXPECT_EQ(c.eval.n.at("minerva"), 4);
  EXPECT_EQ(c.method.lambda_max, 0.5);
  EXPECT_EQ(c.method.gate.warmup_steps, 5);
  EXPECT_EQ(c.method.gate.close, 0.93);
  EXPECT_EQ(c.method.gate.reopen, 1.0);
}

TEST(RunConfig, DefaultsAreValidAndSurviveAPrint) {
  RunConfig first, second;
  first.validate();
  first.options().assign("train.seed=7");
  second.options().load_toml_text(first.options().to_toml(true), "printed");
  second.validate();
  EXPECT_EQ(second.train.seed, 7);
  EXPECT_EQ(second.options().to_toml(false), first.options().to_toml(false));
}

TEST(RunConfig, EveryOptionHasHelp) {
  RunConfig c;
  for (const Option& option : c.options().options())
    EXPECT_FALSE(option.help().empty()) << option.key();
}

TEST(RunConfig, ContradictionsAreRefused) {
  const auto refused = [](std::initializer_list<const char*> lines) {
    RunConfig c;
    for (const char* line : lines)
      c.options().assign(line);
    return error_of([&] { c.validate(); });
  };
  EXPECT_THAT(refused({"optim.betas=[0.9]"}), HasSubstr("optim.betas"));
  EXPECT_THAT(refused({"rollout.top_p=0"}), HasSubstr("rollout.top_p"));
  EXPECT_THAT(refused({"data.max_prompt_tokens=40000"}), HasSubstr("no room for a response"));
  EXPECT_THAT(refused({"method.gate.reopen=0.5"}), HasSubstr("chatter"));
  EXPECT_THAT(refused({"method.gate.band_close=0.9"}), HasSubstr("band_reopen"));
  EXPECT_THAT(refused({"reward.kind=command"}), HasSubstr("reward.command"));
}

TEST(RunConfig, TheDocumentationPageIsTheDescription) {
  std::ifstream file(std::filesystem::path(ANTISD_SOURCE_DIR) / "docs" / "options.md");
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_THAT(page.str(), HasSubstr(RunConfig().options().to_markdown()))
      << "docs/options.md is out of date: run `make docs`";
}

}  // namespace
}  // namespace antisd
