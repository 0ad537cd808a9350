#include "plan/quick_choice.h"

#include <map>

#include <gmock/gmock.h>

#include "plan/model_names.h"

namespace antisd::inline plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kQuickGiB = 1 << 30;

struct QuickCase {
  const char* model;
  QuickMachine machine;  // GiB
  const char* way;       // empty: does not fit
};

QuickMachine in_bytes(QuickMachine machine) {
  machine.memory *= kQuickGiB;
  machine.host *= kQuickGiB;
  return machine;
}

std::map<std::string, std::string> values_of(const QuickChoice& choice) {
  std::map<std::string, std::string> values;
  for (const QuickSetting& setting : choice.settings) {
    values[setting.key] = setting.value;
    EXPECT_FALSE(setting.why.empty()) << setting.key;
  }
  return values;
}

// Bytes a parameter: 18 whole (weights 2, masters 4, moments 8, sums of gradients 4), 10 with the
// moments on the host, 6 with the masters there too, 2 under adapters. Of a GPU nine tenths are
// used, of a host's free memory eight.
TEST(QuickChoice, IsTheFirstWayThatFits) {
  const QuickCase cases[] = {
      {"Qwen3-0.6B", {.gpu = false, .memory = 16}, "whole"},
      {"Qwen3-0.6B", {.gpu = false, .memory = 8}, "adapters"},  // 16 x 0.6 GB whole in fp32
      {"Qwen3-0.6B", {.gpu = true, .memory = 23.5, .host = 60}, "whole"},
      {"Qwen3-4B", {.gpu = true, .memory = 23.5, .host = 100}, "adapters"},  // 6 x 4 GB
      {"Qwen3-4B",
       {.gpu = true, .memory = 31.5, .host = 100},
       "whole, masters and moments on the host"},
      {"Qwen3-4B", {.gpu = true, .memory = 47.5, .host = 100}, "whole, moments on the host"},
      {"Qwen3-4B", {.gpu = true, .memory = 47.5, .host = 20}, "adapters"},  // 8 x 4 GB of the host
      {"Qwen3-4B", {.gpu = true, .memory = 79, .host = 0}, "whole"},
      {"Qwen3-8B", {.gpu = true, .memory = 139, .host = 200}, "whole, moments on the host"},
      {"Qwen3-8B", {.gpu = true, .memory = 139, .host = 10}, "adapters"},
      {"Qwen3-8B", {.gpu = true, .memory = 15.5, .host = 10}, "adapters over int8"},
      {"Qwen3-8B", {.gpu = true, .memory = 11.5, .host = 10}, "adapters over nf4"},
      {"Qwen3-30B-A3B", {.gpu = true, .memory = 139, .host = 200}, "adapters"},
      {"Qwen3-30B-A3B", {.gpu = true, .memory = 47, .host = 200}, "adapters over int8"},
      {"Qwen3-30B-A3B", {.gpu = true, .memory = 31, .host = 200}, "adapters over nf4"},
      {"Qwen3-30B-A3B", {.gpu = true, .memory = 15, .host = 200}, ""},
      {"Qwen3-8B", {.gpu = false, .memory = 4}, ""},
  };
  for (const QuickCase& one : cases) {
    const QuickChoice choice = choose_quick(*known_shape(one.model), in_bytes(one.machine), {});
    const std::string what =
        fmt::format("{} on a {} of {} GiB: {:.1f} GiB, {:.1f} on the host", one.model,
                    one.machine.gpu ? "GPU" : "CPU", one.machine.memory, choice.needed / kQuickGiB,
                    choice.on_host / kQuickGiB);
    EXPECT_EQ(choice.fits ? choice.way : "", one.way) << what;
    if (!choice.fits) {
      EXPECT_THAT(choice.reason, HasSubstr("GiB are free")) << what;
      continue;
    }
    EXPECT_LE(choice.needed, one.machine.memory * kQuickGiB) << what;
    EXPECT_LE(choice.on_host, one.machine.host * kQuickGiB) << what;
  }
}

TEST(QuickChoice, TheWayIsInTheSettings) {
  const ModelShape model = *known_shape("Qwen3-4B");
  const auto chosen = [&](double memory, double host) {
    return values_of(choose_quick(model, in_bytes({true, memory, host}), {}));
  };
  EXPECT_EQ(chosen(79, 100).at("optim.offload"), "\"none\"");
  EXPECT_EQ(chosen(47.5, 100).at("optim.offload"), "\"moments\"");
  EXPECT_EQ(chosen(31.5, 100).at("optim.offload"), "\"all\"");
  const auto adapters = chosen(23.5, 100);
  EXPECT_FALSE(adapters.contains("optim.offload"));
  EXPECT_FALSE(adapters.contains("model.base_dtype"));
  EXPECT_EQ(adapters.at("model.lora.rank"), "32");
  EXPECT_EQ(chosen(7, 100).at("model.base_dtype"), "\"nf4\"");
  EXPECT_EQ(chosen(139, 100).at("optim.lr"), "1e-6");
  EXPECT_EQ(adapters.at("optim.lr"), "1e-5");
}

TEST(QuickChoice, ACpuGetsShortSequencesAndFewOfThem) {
  const ModelShape model = *known_shape("Qwen3-0.6B");
  const auto cpu = values_of(choose_quick(model, in_bytes({false, 64, 0}), {}));
  const auto gpu = values_of(choose_quick(model, in_bytes({true, 79, 64}), {}));
  EXPECT_EQ(cpu.at("rollout.max_sequence_tokens"), "512");
  EXPECT_EQ(cpu.at("rollout.prompts_per_step"), "4");
  EXPECT_EQ(cpu.at("train.steps"), "10");
  EXPECT_EQ(gpu.at("rollout.max_sequence_tokens"), "2048");
  EXPECT_EQ(gpu.at("rollout.prompts_per_step"), "16");
  EXPECT_EQ(gpu.at("train.steps"), "50");
  EXPECT_EQ(gpu.at("eval.every"), "50");
}

TEST(QuickChoice, WhatTheUserSetsIsNotChosen) {
  const ModelShape model = *known_shape("Qwen3-4B");
  const QuickChoice given =
      choose_quick(model, in_bytes({true, 79, 100}), {"model.lora.rank=8", "optim.lr=3e-5"}, 7);
  EXPECT_TRUE(given.fits);
  EXPECT_EQ(given.way, "as given");
  const auto values = values_of(given);
  for (const char* key : {"model.lora.rank", "optim.offload", "optim.lr"})
    EXPECT_FALSE(values.contains(key)) << key;
  EXPECT_EQ(values.at("train.steps"), "7");
  // Of a setting that takes more than there is, no other is tried.
  const QuickChoice large =
      choose_quick(model, in_bytes({true, 23.5, 100}), {"optim.offload=none"});
  EXPECT_FALSE(large.fits);
}

TEST(QuickChoice, WhatDoesNotFitSaysWhatWould) {
  const QuickChoice choice =
      choose_quick(*known_shape("Qwen3-30B-A3B"), in_bytes({true, 15, 64}), {});
  ASSERT_FALSE(choice.fits);
  EXPECT_THAT(choice.reason, AllOf(HasSubstr("adapters over nf4, sequences of 1024 tokens"),
                                   HasSubstr("15.0 GiB are free, 13.5 of them")));
  EXPECT_THAT(choice.remedy,
              AllOf(HasSubstr("a card of 24 GiB is enough (rtx4090)"), HasSubstr("8B fits here")));
  EXPECT_TRUE(choice.settings.empty());
}

TEST(QuickChoice, MoreMemoryNeverAllowsLess) {
  for (const std::string name : {"Qwen3-0.6B", "Qwen3-8B"}) {
    bool before = false;
    for (const double memory : {8, 24, 80, 300}) {
      const bool fits = choose_quick(*known_shape(name), in_bytes({true, memory, 500}), {}).fits;
      EXPECT_TRUE(fits || !before) << name << " with " << memory << " GiB";
      before = fits;
    }
    EXPECT_TRUE(before) << name;
  }
}

// 2 x 4 responses of up to 100 tokens, 50 on average, on a CPU of 2 GFLOP/s and 1 GB/s: products
// at 1 GFLOP/s. P parameters; sampling 100 x max(4 P / 1e9, 2 P 4 / 1e9), scoring 2 x 2 P x 400 /
// 1e9, update 6 P x 400 / 1e9.
TEST(QuickChoice, SecondsOfACpuStep) {
  const ModelShape model = *known_shape("Qwen3-0.6B");
  RunConfig config;
  for (const char* setting :
       {"rollout.max_sequence_tokens=100", "rollout.prompts_per_step=2", "rollout.group_size=4"})
    config.options().assign(setting);
  config.resolve();
  const auto parameters = static_cast<double>(model.parameter_count());
  EXPECT_NEAR(cpu_step_seconds(model, config, {.flops = 2e9, .read = 1e9}),
              parameters * (800 + 1600 + 2400) / 1e9, 1e-6);
  // Reading the weights takes longer than computing.
  EXPECT_NEAR(cpu_step_seconds(model, config, {.flops = 2e9, .read = 1e8}),
              parameters * (4000 + 1600 + 2400) / 1e9, 1e-6);
}

}  // namespace
}  // namespace antisd::inline plan
