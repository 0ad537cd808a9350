#include "cli/weights/train_testing.h"

namespace antisd::inline cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;

class Plan : public testing::TrainTest {
 protected:
  // In an empty folder: of the recipe nothing but its files is there.
  Outcome plan(const std::string& recipe, const std::string& more) const {
    return run(fmt::format("plan {}/recipes/{} {}", ANTISD_SOURCE_DIR, recipe, more));
  }
};

TEST_F(Plan, NeedsOnlyTheRecipe) {
  const Outcome text = plan("qwen3-8b/antisd.toml", "--gpus 8 --per-node 8 --device h20");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("models/Qwen3-8B, 8.19 billion parameters, on 8 x h20"),
                              HasSubstr("optimizer (not set: chosen by memory)"),
                              HasSubstr("fits         yes"), HasSubstr("tokens of keys and values"),
                              HasSubstr("sampling:"), HasSubstr("hidden behind the update"),
                              HasSubstr("a checkpoint, every 10 steps"),
                              HasSubstr("an evaluation, 21 of them"), HasSubstr("limit "),
                              HasSubstr("measured on an H200")));
  const Outcome json = plan("qwen3-8b/antisd.toml", "--gpus 8 --per-node 8 --device h20 --json");
  const Json report = Json::parse(json.out);
  EXPECT_EQ(report["fits"], true);
  EXPECT_EQ(report["ranks"], 8);
  const Json& seconds = report["seconds"];
  EXPECT_NEAR(report["step_seconds"].get<double>(),
              seconds["sampling"].get<double>() + seconds["scoring"].get<double>() +
                  seconds["update"].get<double>() + seconds["collectives_exposed"].get<double>(),
              1e-6);
  EXPECT_GT(seconds["scoring"], 0.0);  // of the teacher
  EXPECT_GT(report["memory"]["parts"]["update"]["activations"], 0.0);
}

TEST_F(Plan, WhatDoesNotFitIsAnAnswerToo) {
  const Outcome outcome = plan("qwen3-30b-a3b/grpo.toml", "--device rtx4090 --gpus 2");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("fits         NO"), HasSubstr("limit        memory:")));
  const std::string eight = "--device h200 --json optim.offload=";
  EXPECT_EQ(Json::parse(plan("qwen3-8b/grpo.toml", eight + "none").out)["smallest_gpus"], 2);
  EXPECT_EQ(Json::parse(plan("qwen3-8b/grpo.toml", eight + "auto").out)["smallest_gpus"], 1);
}

TEST_F(Plan, AFrozenBaseAloneTrainsNothing) {
  for (const char* command : {"plan", "train"}) {
    const Outcome outcome = run(fmt::format("{} {}/recipes/qwen3-8b/grpo.toml model.base_dtype=nf4",
                                            command, ANTISD_SOURCE_DIR));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("model.base_dtype = \"nf4\""), HasSubstr("set model.lora.rank")));
  }
}

TEST_F(Plan, TakesLengthsFromNumbersOrFromARun) {
  const auto sampling = [&](const std::string& more) {
    const Outcome outcome = plan("qwen3-4b-instruct-2507/grpo.toml",
                                 "eval.every=0 --gpus 8 --device h200 --json " + more);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out)["seconds"]["sampling"].get<double>();
  };
  EXPECT_LT(sampling("--lengths mean=1000,p99=4000"),
            sampling("--lengths mean=8000,p99=32000") / 4);
  ASSERT_EQ(train("run", "record.rollouts_every=1 train.steps=2").status, 0);
  EXPECT_LT(sampling("--run run"), 2);  // a few words each
}

TEST_F(Plan, RefusesWhatItCannotPlan) {
  const auto refused = [&](const std::string& more, const std::string& why) {
    const Outcome outcome = plan("qwen3-8b/grpo.toml", more);
    EXPECT_EQ(outcome.status, 2) << more;
    EXPECT_THAT(outcome.err, HasSubstr(why));
  };
  refused("--device h300", "there is no card 'h300'; known: h200, h100");
  refused("--gpus 12 --per-node 8", "12 GPUs do not fill nodes of 8");
  refused("--lengths mean=5", "mean and p99 are needed");
  refused("--lengths mean=5,p99=9 --run run", "--lengths excludes --run");
  refused("--run nowhere", "no lengths");
  refused("model.path=models/Unknown-1B", "known without files: Qwen3-0.6B");
  refused("--gpus 0", "--gpus");
  // A model of its own is read from its config.json.
  const Outcome own = plan("qwen3-8b/grpo.toml", "model.path=model eval.every=0");
  EXPECT_EQ(own.status, 0) << own.err;
  EXPECT_THAT(own.out, HasSubstr("fits         yes"));
}

}  // namespace
}  // namespace antisd::inline cli
