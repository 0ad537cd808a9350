// Runs with adapters as a user makes them: training, checkpoints, other commands, merging.

#include <gmock/gmock.h>

#include "cli/weights/train_testing.h"
#include "io/checksum.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;

class TrainAdapters : public testing::TrainTest {
 protected:
  TrainAdapters()
      : TrainTest({"model.lora.rank=4", "model.lora.alpha=16", "loss.kl_coef=0.05",
                   "train.micro_batches=2", "checkpoint.every=2", "train.steps=4"}) {}

  fs::path checkpoint(const std::string& run, int step) const {
    return folder_ / run / "checkpoints" / fmt::format("step-{:06}", step);
  }
  std::string saved(const std::string& run, int step) const {
    const fs::path folder = checkpoint(run, step);
    std::string bytes = read_file(folder / "adapter" / "adapter_model.safetensors") +
                        read_file(folder / "adapter" / "adapter_config.json") +
                        read_file(folder / "optimizer.safetensors") +
                        read_file(folder / "state.json");
    if (fs::exists(folder / "teacher"))
      bytes += read_file(folder / "teacher" / "adapter_model.safetensors");
    return bytes;
  }
  std::string base_sum() const { return checksum_of_file(folder_ / "model/model.safetensors"); }
};

TEST_F(TrainAdapters, AResumedRunIsTheUndisturbedOne) {
  const std::string before = base_sum();
  for (const std::string method :
       {"method.name=antisd ", "method.name=sdpo method.sdpo.teacher_ema=0.2 "}) {
    const std::string whole = "whole" + std::to_string(method.size()), cut = "cut" + whole;
    const Outcome outcome = train(whole, method);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("adapters: rank 4, alpha 16 on down_proj, gate_proj"));
    ASSERT_EQ(train(cut, method + "train.steps=2").status, 0);
    const Outcome resumed = train(cut, method + "--resume");
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_TRUE(saved(whole, 4) == saved(cut, 4));
    EXPECT_FALSE(saved(whole, 2) == saved(whole, 4));
    EXPECT_EQ(reproducible(whole), reproducible(cut));
    EXPECT_FALSE(fs::exists(checkpoint(whole, 4) / "model"));
  }
  EXPECT_EQ(base_sum(), before);
}

TEST_F(TrainAdapters, AnyNumberOfRanksGivesTheSameBytes) {
  ASSERT_EQ(train("one").status, 0);
  for (const std::string shard : {"none", "weights"}) {
    const Outcome two = train(shard, "--processes 2 dist.shard=" + shard);
    ASSERT_EQ(two.status, 0) << two.err;
    EXPECT_TRUE(saved("one", 4) == saved(shard, 4)) << shard;
  }
}

// The KL term is against the base: with B = 0 the first step has none, later ones do.
TEST_F(TrainAdapters, TheReferenceIsTheModelWithoutAdapters) {
  ASSERT_EQ(train("run", "optim.lr=0.05").status, 0);
  const std::vector<Json> rows = metrics("run");
  EXPECT_NEAR(rows.at(0).at("actor/kl_loss").get<double>(), 0, 1e-6);
  EXPECT_GT(rows.at(3).at("actor/kl_loss").get<double>(), 1e-5);
}

TEST_F(TrainAdapters, OtherCommandsTakeTheAdapterAndAMergedModelSaysTheSame) {
  ASSERT_EQ(train("run", "optim.lr=0.05").status, 0);
  const std::string adapter = checkpoint("run", 4) / "adapter";
  const Outcome merged = run("merge " + adapter + " -o merged");
  ASSERT_EQ(merged.status, 0) << merged.err;
  const std::string row = R"({"prompt":"Numbers 1 2 target 3","response":"win 4 5 [EOS]"})";
  const auto logp = [&](const std::string& model) {
    const Outcome scored = run("score --device cpu " + model, row + "\n");
    EXPECT_EQ(scored.status, 0) << scored.err;
    return Json::parse(scored.out).at("logp").get<std::vector<double>>();
  };
  const auto own = logp(adapter), whole = logp("merged"), base = logp("model");
  EXPECT_THAT(own, ::testing::Pointwise(::testing::DoubleNear(1e-4), whole));
  EXPECT_THAT(own, ::testing::Not(::testing::Pointwise(::testing::DoubleNear(1e-2), base)));

  const std::string generate =
      " --device cpu --temperature 0 --max-tokens 8 --prompt 'Numbers 1 2 target 3'";
  const Outcome said = run("generate " + adapter + generate);
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_EQ(said.out, run("generate merged" + generate).out);
  const Outcome evaluated =
      run("eval run eval.benches=countdown:3:held-out:4 reward.kind=countdown --device cpu");
  EXPECT_EQ(evaluated.status, 0) << evaluated.err;
  EXPECT_TRUE(fs::exists(folder_ / "run/eval/step-000004/summary.json"));
  EXPECT_EQ(run("merge " + adapter + " -o merged").status, 2);  // not empty
  EXPECT_THAT(run("merge model -o other").err, HasSubstr("holds no adapter_config.json"));

  // The base may have moved.
  fs::rename(folder_ / "model", folder_ / "moved");
  EXPECT_THAT(run("score --device cpu " + adapter, row).err,
              AllOf(HasSubstr("base model"), HasSubstr("--base DIR")));
  EXPECT_EQ(logp(adapter + " --base moved"), own);
}

// Also above a base of fewer bits: resumed, on ranks, and evaluated in the run's own format.
TEST_F(TrainAdapters, AQuantisedBaseChangesNothingOfThat) {
  ASSERT_EQ(train("plain").status, 0);
  for (const std::string base : {"int8", "nf4"}) {
    const std::string key = "method.name=antisd model.base_dtype=" + base + " ",
                      cut = base + "-cut";
    const Outcome whole = train(base, key);
    ASSERT_EQ(whole.status, 0) << whole.err;
    ASSERT_EQ(train(cut, key + "train.steps=2").status, 0);
    ASSERT_EQ(train(cut, key + "--resume").status, 0);
    EXPECT_TRUE(saved(base, 4) == saved(cut, 4));
    EXPECT_FALSE(saved(base, 4) == saved("plain", 4));
    const Outcome two = train(base + "-two", key + "--processes 2 dist.shard=weights");
    ASSERT_EQ(two.status, 0) << two.err;
    EXPECT_TRUE(saved(base, 4) == saved(base + "-two", 4));
    for (const Json& row : metrics(base))
      EXPECT_LT(row.at("training/rollout_probs_diff_max").get<double>(), 1e-4);
    const Outcome evaluated = run("eval " + base +
                                  " eval.benches=countdown:3:held-out:4 reward.kind=countdown "
                                  "--device cpu");
    EXPECT_EQ(evaluated.status, 0) << evaluated.err;
  }
}

TEST_F(TrainAdapters, WhatDoesNotFitIsSaid) {
  ASSERT_EQ(train("run", "train.steps=2").status, 0);
  EXPECT_THAT(train("run", "--resume model.lora.rank=8").err,
              AllOf(HasSubstr("rank 4, alpha 16"), HasSubstr("rank 8, alpha 16")));
  EXPECT_THAT(train("whole", "model.lora.rank=0 train.init_from=run").err,
              AllOf(HasSubstr("holds adapters"), HasSubstr("antisd merge")));
  EXPECT_THAT(train("again", "model.path=" + (checkpoint("run", 2) / "adapter").string()).err,
              AllOf(HasSubstr("model.path"), HasSubstr("is an adapter")));
  ASSERT_EQ(train("full", "model.lora.rank=0 train.steps=1").status, 0);
  EXPECT_THAT(train("lora", "train.init_from=full").err, HasSubstr("holds a whole model"));
  const Outcome further = train("further", "train.init_from=run train.steps=1");
  EXPECT_EQ(further.status, 0) << further.err;
  // Another base of the same shape.
  testing::make_small_model(folder_ / "model", /*seed=*/2);
  const Outcome other = train("run", "--resume");
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("trained on another base model"));
}

TEST_F(TrainAdapters, ADryRunPlansForThem) {
  const Outcome dry = train("run", "--dry-run");
  ASSERT_EQ(dry.status, 0) << dry.err;
  // 2 layers of (16, 16), (16, 8) twice, (16, 16); (16, 32) twice, (32, 16).
  EXPECT_THAT(dry.out,
              HasSubstr(fmt::format("{:.2f} M parameters are trained", 2 * 4 * 256 / 1e6)));
  EXPECT_THAT(dry.out, HasSubstr("the model without its adapters"));
}

TEST_F(TrainAdapters, SupervisedTrainingTakesThem) {
  write("text.jsonl", R"({"text":"Numbers 1 2 target 3 win win"})"
                      "\n");
  const std::string pretrain =
      "pretrain model.path=model model.lora.rank=2 pretrain.source=text.jsonl "
      "pretrain.documents_per_step=2 pretrain.sequence_tokens=16 checkpoint.every=2 "
      "optim.lr=0.01 --device cpu --threads 1 ";
  const Outcome whole = run(pretrain + "record.dir=whole train.steps=4");
  ASSERT_EQ(whole.status, 0) << whole.err;
  ASSERT_EQ(run(pretrain + "record.dir=cut train.steps=2").status, 0);
  const Outcome resumed = run(pretrain + "record.dir=cut train.steps=4 --resume");
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_TRUE(saved("whole", 4) == saved("cut", 4));
  EXPECT_THAT(run(pretrain + "record.dir=new pretrain.new_model.hidden=16").err,
              HasSubstr("adapters need a trained model"));
}

}  // namespace
}  // namespace antisd::inline cli
