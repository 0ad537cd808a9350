#include "config/config_changes.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<ConfigChange> changes_of(const std::vector<std::string>& before,
                                     const std::vector<std::string>& now) {
  RunConfig first, second;
  for (const std::string& line : before)
    first.options().assign(line);
  for (const std::string& line : now)
    second.options().assign(line);
  return config_changes(first, second);
}

std::vector<std::string> texts(const std::vector<ConfigChange>& changes) {
  std::vector<std::string> all;
  for (const ConfigChange& change : changes)
    all.push_back(change.text());
  return all;
}

TEST(ConfigChanges, NamesEveryKeyThatDiffers) {
  EXPECT_THAT(changes_of({"optim.lr=0.1"}, {"optim.lr=0.1"}), IsEmpty());
  EXPECT_THAT(texts(changes_of({"optim.lr=0.1", "data.chat_options.a=1"},
                               {"optim.lr=0.2", "reward.kind=code"})),
              ElementsAre("data.chat_options: {a = 1} -> {}", "reward.kind: \"math\" -> \"code\"",
                          "optim.lr: 0.1 -> 0.2"));
}

TEST(ConfigChanges, RefusesWhatChangesTheMeaningUnlessAllowed) {
  const auto refused = [](const std::string& now, const std::vector<std::string>& allowed = {}) {
    return error_of([&] { check_changes(changes_of({}, {now}), allowed, "run/config.toml"); });
  };
  for (const char* now : {"reward.kind=code", "data.template=none", "data.train=other.jsonl",
                          "data.map.problem=question", "data.chat_options.enable_thinking=true",
                          "context.templates.math=x", "model.path=other", "method.name=grpo"}) {
    const std::string key = changes_of({}, {now}).front().key;
    EXPECT_THAT(refused(now), AllOf(HasSubstr("run/config.toml: "), HasSubstr(key + ": "),
                                    HasSubstr("--allow " + key)));
    const std::string section = key.substr(0, key.find('.'));
    EXPECT_NO_THROW(check_changes(changes_of({}, {now}), {key}, ""));
    EXPECT_NO_THROW(check_changes(changes_of({}, {now}), {section}, ""));
    EXPECT_THAT(refused(now, {"optim"}), HasSubstr(key));
  }
  EXPECT_NO_THROW(check_changes(changes_of({}, {"data.chat_options.thinking=true"}),
                                {"data.chat_options.thinking"}, ""));
  EXPECT_THAT(refused("optim.lr=1", {"reward.knd"}), HasSubstr("did you mean 'reward.kind'?"));
  EXPECT_THAT(refused("optim.lr=1", {"rewar"}), HasSubstr("did you mean 'reward'?"));
}

TEST(ConfigChanges, WhatNeverMattersIsNeverRefused) {
  const std::vector<std::string> harmless = {
      "train.steps=900",  "record.dir=elsewhere",     "checkpoint.every=3",
      "eval.every=7",     "reward.workers=2",         "reward.timeout_s=99",
      "eval.n.default=3", "record.tensorboard=false", "optim.offload=all"};
  for (const ConfigChange& change : changes_of({}, harmless))
    EXPECT_EQ(change.kind, ChangeKind::kHarmless) << change.key;
  for (const char* now : {"optim.lr=1", "rollout.temperature=0.5", "loss.kl_coef=0.1",
                          "train.steps=5", "method.gate.statistic=mean"})
    EXPECT_EQ(changes_of({}, {now}).front().kind, ChangeKind::kTraining) << now;
}

TEST(ConfigChanges, TheSameFileByAnotherPathMeansTheSame) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "rows.jsonl") << "{}\n";
  const std::string path = (folder / "rows.jsonl").string();
  const std::string roundabout = (folder.path() / "." / "rows.jsonl").string();
  const auto change = changes_of({"data.train=" + path}, {"data.train=" + roundabout});
  ASSERT_EQ(change.size(), 1);
  EXPECT_EQ(change.front().kind, ChangeKind::kHarmless);
}

TEST(ConfigChanges, LongValuesAreShortened) {
  const std::string text = "{problem}" + std::string(5000, 'x');
  EXPECT_LT(changes_of({}, {"data.template=" + text}).front().text().size(), 300);
}

}  // namespace
}  // namespace antisd::inline config
