#include "plan/run_plan.h"

#include <algorithm>
#include <iostream>

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/testing.h"
#include "io/atomic_file.h"
#include "plan/model_names.h"

namespace antisd::inline plan {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

void configure_run(RunConfig& config, std::initializer_list<const char*> settings) {
  config.options().assign("method.name=grpo");
  config.options().assign("eval.every=0");
  config.options().assign("optim.offload=none");  // unless the test says otherwise
  for (const char* setting : settings)
    config.options().assign(setting);
  config.resolve();
}

RunPlan planned(const char* model, const Machine& machine,
                std::initializer_list<const char*> settings = {},
                const char* lengths = "mean=8000,p99=32000") {
  RunConfig config;
  configure_run(config, settings);
  const ModelShape shape = *known_shape(model);
  return plan_run({config, shape, machine, set_forms(config)},
                  Lengths::drawn(parse_lengths(lengths), /*seed=*/0));
}

Machine machine_of(const char* card, int gpus) {
  return {.card = find_card(card), .gpus = gpus, .per_node = std::min(8, gpus)};
}

// A table worked out before the program existed: GB of a rank in the update, 32,768 tokens at a
// time, layers recomputed. It takes gradients and activations to be there at the same time, which
// adds at most a few layers to these two forms, and all of a layer's values twice in its backward
// pass, which frees them as it goes.
TEST(RunPlan, AgreesWithTheArithmeticOfTheDesign) {
  struct Row {
    const char* model;
    int ranks;
    Shard shard;
    double gigabytes;
  };
  for (const Row& row :
       {Row{"Qwen3-4B", 8, Shard::kGradients, 49}, Row{"Qwen3-4B", 8, Shard::kWeights, 43},
        Row{"Qwen3-4B", 16, Shard::kGradients, 45}, Row{"Qwen3-4B", 16, Shard::kWeights, 38.5},
        Row{"Qwen3-8B", 8, Shard::kGradients, 78}, Row{"Qwen3-8B", 8, Shard::kWeights, 66},
        Row{"Qwen3-8B", 16, Shard::kGradients, 69}, Row{"Qwen3-8B", 16, Shard::kWeights, 57},
        Row{"Olmo-3-7B-Instruct", 8, Shard::kGradients, 71},
        Row{"Olmo-3-7B-Instruct", 8, Shard::kWeights, 60},
        Row{"Olmo-3-7B-Instruct", 16, Shard::kWeights, 51},
        Row{"Qwen3-30B-A3B", 8, Shard::kGradients, 168},
        Row{"Qwen3-30B-A3B", 8, Shard::kWeights, 115},
        Row{"Qwen3-30B-A3B", 16, Shard::kGradients, 137},
        Row{"Qwen3-30B-A3B", 16, Shard::kWeights, 81}}) {
    RunConfig config;
    configure_run(config, {});
    const MemoryPlan memory =
        plan_memory(*known_shape(row.model), config, resolve_method(config.method, config.loss),
                    at::Device(at::kCUDA), at::kBFloat16, {row.ranks, row.ranks, row.shard});
    const double update =
        (memory.total(MemoryTime::kAlways) + memory.total(MemoryTime::kUpdate)) / 1e9;
    EXPECT_NEAR(update / row.gigabytes, 0.92, 0.06)
        << row.model << ", " << row.ranks << " ranks, " << shard_name(row.shard);
  }
}

// bench/RESULTS.md, "several ranks on one GPU": the shape of Qwen3-0.6B, about 22,000 tokens of
// documents per step in four micro-batches.
TEST(RunPlan, PeaksOfMemoryAreThoseThatWereMeasured) {
  struct Row {
    int ranks;
    Shard shard;
    double gib;
  };
  for (const Row& row :
       {Row{2, Shard::kNone, 11.34}, Row{2, Shard::kGradients, 7.75}, Row{2, Shard::kWeights, 7.33},
        Row{4, Shard::kOptimizer, 5.30}, Row{4, Shard::kWeights, 4.43}}) {
    RunConfig config;
    configure_run(config, {"rollout.prompts_per_step=64", "rollout.group_size=8",
                           "rollout.max_sequence_tokens=43", "train.micro_batch_tokens=5504"});
    const MemoryPlan memory =
        plan_memory(*known_shape("Qwen3-0.6B"), config, resolve_method(config.method, config.loss),
                    at::Device(at::kCUDA), at::kBFloat16,
                    {row.ranks, row.shard == Shard::kNone ? 1 : row.ranks, row.shard});
    const double update =
        (memory.total(MemoryTime::kAlways) + memory.total(MemoryTime::kUpdate)) / (1 << 30);
    std::cout << row.ranks << " ranks, " << shard_name(row.shard) << ": " << update << " GiB, "
              << row.gib << " measured\n";
    EXPECT_NEAR(update / row.gib, 1, 0.05) << row.ranks << " ranks, " << shard_name(row.shard);
  }
}

// bench/RESULTS.md, "peaks of memory by phase": GiB of a rank on an H200.
TEST(RunPlan, PeaksOfTrainingAreThoseThatWereMeasured) {
  struct Row {
    const char* model;
    RankDivision ranks;
    std::size_t kept;
    std::initializer_list<const char*> settings;
    double sampling, scoring, update;  // 0: there was none
  };
  const std::initializer_list<const char*> countdown = {
      "rollout.prompts_per_step=16", "rollout.group_size=8", "rollout.max_sequence_tokens=1024",
      "train.micro_batch_tokens=16384"};
  const std::initializer_list<const char*> bench = {
      "rollout.prompts_per_step=8", "rollout.group_size=8", "rollout.max_sequence_tokens=966",
      "train.micro_batch_tokens=16384", "data.max_prompt_tokens=256"};
  for (const Row& row : {Row{"Qwen3-0.6B", {}, 0, countdown, 22.11, 8.35, 14.81},
                         Row{"Qwen3-0.6B", {}, 28, countdown, 22.11, 8.35, 32.18},
                         Row{"Qwen3-0.6B", {4, 4, Shard::kWeights}, 0, countdown, 6.55, 3.43, 7.67},
                         Row{"Qwen3-4B", {}, 28, bench, 61.62, 0, 122.97}}) {
    RunConfig config;
    configure_run(config, row.settings);
    const MemoryPlan memory = plan_memory_keeping(row.kept, *known_shape(row.model), config,
                                                  resolve_method(config.method, config.loss),
                                                  at::Device(at::kCUDA), at::kBFloat16, row.ranks);
    const double always = memory.total(MemoryTime::kAlways);
    const auto expect_near = [&](const char* phase, double planned, double measured) {
      if (measured == 0) return;
      EXPECT_NEAR(planned / (1 << 30) / measured, 1, 0.05)
          << row.model << ", " << row.ranks.size << " ranks, " << row.kept << " kept, " << phase;
    };
    expect_near("sampling", memory.beside_cache() + memory.cache_bytes(139.0 * (1 << 30)),
                row.sampling);
    expect_near("scoring", always + memory.total(MemoryTime::kScoring), row.scoring);
    expect_near("update", always + memory.total(MemoryTime::kUpdate), row.update);
  }
}

TEST(RunPlan, ThePapersMachinesFit) {
  const RunPlan small = planned("Qwen3-8B", machine_of("h20", 8));
  EXPECT_TRUE(small.fits && small.shard_chosen);
  EXPECT_EQ(small.ranks.shard, Shard::kOptimizer);
  EXPECT_EQ(planned("Qwen3-4B", machine_of("h200", 8)).ranks.shard, Shard::kOptimizer);
  const RunPlan experts = planned("Qwen3-30B-A3B", machine_of("h20", 16));
  EXPECT_TRUE(experts.fits);
  EXPECT_EQ(experts.ranks.shard, Shard::kWeights);
  EXPECT_EQ(experts.smallest_gpus, 16);
  EXPECT_TRUE(planned("Qwen3-30B-A3B", machine_of("h200", 8)).fits);

  const RunPlan too_few = planned("Qwen3-30B-A3B", machine_of("h20", 8));
  EXPECT_FALSE(too_few.fits);
  EXPECT_FALSE(too_few.step);
  EXPECT_EQ(too_few.smallest_gpus, 16);
  EXPECT_THAT(too_few.limit, HasSubstr("memory"));
  EXPECT_THAT(too_few.advice, Contains(HasSubstr("16 GPUs")));
  EXPECT_THAT(too_few.advice, Contains("8 x h200"));
  // Advice is what the plan itself says of the advised settings.
  const char* shorter = "rollout.max_sequence_tokens=16384 train.micro_batch_tokens=16384";
  EXPECT_THAT(planned("Qwen3-4B", machine_of("l40s", 4)).advice, Contains(shorter));
  EXPECT_TRUE(planned("Qwen3-4B", machine_of("l40s", 4),
                      {"rollout.max_sequence_tokens=16384", "train.micro_batch_tokens=16384"})
                  .fits);
}

// What does not fit whole is divided for good: it fits, and every token waits for all layers.
TEST(RunPlan, WeightsThatStayDividedFitAndAreSlow) {
  const std::initializer_list<const char*> settings = {
      "dist.shard=weights", "rollout.max_sequence_tokens=1024", "train.micro_batch_tokens=1024",
      "data.max_prompt_tokens=256"};
  const char* lengths = "mean=256,p99=700";
  const RunPlan divided = planned("Qwen3-30B-A3B", machine_of("l40s", 32), settings, lengths);
  const RunPlan whole = planned("Qwen3-30B-A3B", machine_of("h20", 32), settings, lengths);
  ASSERT_TRUE(divided.fits && whole.fits);
  EXPECT_FALSE(divided.ranks.whole_between);
  EXPECT_TRUE(whole.ranks.whole_between);
  EXPECT_LE(divided.memory.needed(), divided.available);
  EXPECT_THAT(divided.limit, HasSubstr("fetched from the other ranks for every token"));
  // Three of four nodes' parts of the layers come over 45 GB/s, of which 80 % count.
  const Holdings held(*known_shape("Qwen3-30B-A3B"), divided.ranks);
  const double fetch = 2 * held.whole_layers() * 24 / 32 / (45e9 * 0.8);
  EXPECT_GT(divided.step->sampling.seconds(),
            static_cast<double>(divided.step->sampling.steps) * fetch);
  EXPECT_LT(whole.step->sampling_seconds(), divided.step->sampling_seconds() / 5);
}

// Where a card has room, layers are kept; the update is shorter by what is not recomputed.
TEST(RunPlan, LayersAreKeptWhereTheCardHasRoom) {
  const RunPlan some = planned("Qwen3-4B", machine_of("h200", 1), {"dist.shard=none"});
  EXPECT_GT(some.memory.kept_layers, 0);
  const RunPlan none = planned("Qwen3-4B", machine_of("h200", 1),
                               {"dist.shard=none", "model.gradient_checkpointing=true"});
  EXPECT_EQ(none.memory.kept_layers, 0);
  EXPECT_LE(some.memory.needed(), some.available);
  EXPECT_LT(some.step->update, none.step->update);
  EXPECT_EQ(planned("Qwen3-4B", machine_of("h200", 8)).memory.layers, 36);
}

TEST(RunPlan, DistShardIsObeyedWhereItIsSet) {
  const RunPlan none = planned("Qwen3-8B", machine_of("h20", 8), {"dist.shard=none"});
  EXPECT_FALSE(none.fits || none.shard_chosen);
  EXPECT_EQ(none.ranks.shard, Shard::kNone);
  EXPECT_EQ(none.smallest_gpus, 0);
  EXPECT_THAT(none.advice, Contains("dist.shard=gradients"));
  const RunPlan node =
      planned("Qwen3-4B", machine_of("h200", 16), {"dist.shard=optimizer", "dist.shard_over=node"});
  EXPECT_EQ(node.ranks.members, 8);
}

// The design's arithmetic for 8B on one H200: 85 GiB of the card and 91.6 of its host; 98 GB each
// way in 2 s.
TEST(RunPlan, AStateOnTheHostMakesRoomOnTheCard) {
  const RunPlan none = planned("Qwen3-8B", machine_of("h200", 1));
  EXPECT_FALSE(none.fits);
  EXPECT_THAT(none.advice, Contains(HasSubstr("optim.offload=")));
  const RunPlan automatic = planned("Qwen3-8B", machine_of("h200", 1), {"optim.offload=auto"});
  EXPECT_TRUE(automatic.fits && automatic.offload_chosen);
  EXPECT_NE(automatic.ranks.offload, Offload::kNone);
  EXPECT_EQ(automatic.smallest_gpus, 1);
  const RunPlan all = planned("Qwen3-8B", machine_of("h200", 1),
                              {"optim.offload=all", "model.gradient_checkpointing=true"});
  constexpr double kGiB = 1 << 30;
  EXPECT_NEAR(all.memory.total(MemoryTime::kOnHost) / kGiB, 91.6, 0.1);
  const double update =
      all.memory.total(MemoryTime::kAlways) + all.memory.total(MemoryTime::kUpdate);
  EXPECT_NEAR(update / kGiB, 85, 0.05 * 85);
  // Of the 1.95 s the update itself takes a tenth, at the same time.
  EXPECT_NEAR(all.step->streaming, 1.95, 0.15);
  EXPECT_GT(all.cache_tokens, automatic.cache_tokens);
  // What fits without stays where it is.
  EXPECT_EQ(planned("Qwen3-4B", machine_of("h200", 1), {"optim.offload=auto"}).ranks.offload,
            Offload::kNone);
  const Json json = json_of(automatic);
  EXPECT_EQ(json["offload"], offload_name(automatic.ranks.offload));
  EXPECT_EQ(json["offloads"]["none"]["fits"], false);
}

// What ranks can divide is divided before it goes to the host; what the host has no room for is not
// chosen.
TEST(RunPlan, FormsAreTriedInTheirOrder) {
  RunConfig config;
  configure_run(config, {"optim.offload=auto"});
  const ModelShape shape = *known_shape("Qwen3-8B");
  const auto chosen = [&](int ranks, double device, double host) {
    const StateForm form = chosen_form(possible_forms(
        config, set_forms(config), ranks, ranks, at::kCUDA, {device, host},
        [&](const RankDivision& division) {
          return plan_memory(shape, config, resolve_method(config.method, config.loss), at::kCUDA,
                             at::kBFloat16, division);
        }));
    return std::pair(form.shard, form.offload);
  };
  constexpr double kGB = 1e9, kMuch = 1e12;
  EXPECT_EQ(chosen(1, 250 * kGB, kMuch), std::pair(Shard::kNone, Offload::kNone));
  EXPECT_EQ(chosen(1, 140 * kGB, kMuch), std::pair(Shard::kNone, Offload::kMoments));
  EXPECT_EQ(chosen(1, 100 * kGB, kMuch), std::pair(Shard::kNone, Offload::kAll));
  EXPECT_EQ(chosen(1, 140 * kGB, 10 * kGB), std::pair(Shard::kNone, Offload::kNone));
  EXPECT_EQ(chosen(4, 100 * kGB, kMuch), std::pair(Shard::kOptimizer, Offload::kNone));
  EXPECT_EQ(chosen(2, 90 * kGB, kMuch).second, Offload::kMoments);
}

// Lengths of about 8,000 tokens: what a second program, written before this one, gave for an H200.
TEST(RunPlan, TheLongestResponseLimitsManyGpus) {
  const RunPlan eight = planned("Qwen3-8B", machine_of("h200", 8));
  const RunPlan many = planned("Qwen3-8B", machine_of("h200", 64));
  EXPECT_NEAR(eight.step->sampling_seconds(), 268, 0.15 * 268);
  EXPECT_NEAR(many.step->sampling_seconds(), 193, 0.16 * 193);
  EXPECT_THAT(many.limit, HasSubstr("the longest response"));
  EXPECT_LT(many.step->update, eight.step->update / 3);
  EXPECT_LT(many.step->traffic.exposed, 0.01 * many.step->seconds());
  EXPECT_LE(many.step->sampling.longest, many.step->sampling.seconds());
  // A slower network hides less.
  Machine slow = machine_of("h200", 64);
  slow.network = 0.1e9;
  EXPECT_THAT(planned("Qwen3-8B", slow).limit, HasSubstr("the network"));
}

// Worked by hand: equal lengths, so that nothing depends on chance. 4 prompts of 28 tokens, 2
// responses of 100 each: one micro-batch of 28 x 4 + 100 x 8 rows.
TEST(RunPlan, AnEvenStepWorkedByHand) {
  RunConfig config;
  configure_run(config, {"rollout.prompts_per_step=4", "rollout.group_size=2",
                         "rollout.max_sequence_tokens=129"});
  const ModelShape shape = *known_shape("Qwen3-0.6B");
  const StepModel model(config, shape, machine_of("h200", 1), {});
  const Lengths lengths =
      Lengths::drawn({.mean = 100, .p99 = 100.0000001, .prompt = 28}, /*seed=*/0);
  const StepTime step = model.step(lengths, 1e9);
  EXPECT_EQ(step.sampling.new_tokens, 800);
  EXPECT_EQ(step.sampling.steps, 100);
  EXPECT_EQ(step.micro_batches, 1);
  EXPECT_EQ(step.scoring, 0);
  EXPECT_EQ(step.traffic.exposed, 0);
  const Rates rates = rates_of(find_card("h200"));
  // Weights of 28 layers and the head are read in each step, products of 8 rows are faster.
  const double weights = 2.0 * (28 * (1024 * (4096 + 2048) + 3 * 1024 * 3072) + 151'936 * 1024);
  // Row t has 28 + t keys when it gives token t + 1; 28 layers x 8 heads x 128, keys and values.
  const double keys = 8 * (100 * 28 + 99 * 100 / 2);
  const double decode = 100 * (weights / rates.read + 28 * rates.decode_layer) +
                        keys * 28 * 2 * 2 * 1024 / rates.read;
  EXPECT_NEAR(step.sampling.decode, decode, 1e-9);
  // Two products backward and most of one again for each forward one: 8 x the layers' elements but
  // for the last products; four of the head; attention of 128 x 128 / 2.
  const double rows = 28 * 4 + 100 * 8;
  const double elements = 28.0 * (1024 * (4096 + 2048) + 3 * 1024 * 3072);
  const double skipped = 28.0 * 1024 * 3072;
  const double bytes = 28.0 * (24 * 1024 + 4 * (2048 + 1024) + 6 * 3072);
  const double seen = 28.0 * 4 * (2 * (128 * 129 / 2) - 28 * 29 / 2);
  const double attention = 4 * 2048 * seen;
  const double update =
      rows * ((8 * elements - 2 * skipped) / rates.products + 4 * bytes / rates.elementwise) +
      attention / rates.attention + 2.5 * attention / rates.attention_backward +
      800 * 151'936.0 *
          (2 * 1024 / rates.head_forward + rates.logit + 3 * 2 * 1024 / rates.head_backward) +
      rates.adamw_start;
  const Holdings held(shape, {});
  EXPECT_NEAR(step.update, update + held.trainable() * 30 / rates.adamw, 1e-9);
}

TEST(RunPlan, WindowsBoundWhatIsReadAndComputed) {
  const PassTime time(*known_shape("Olmo-3-7B-Think"), rates_of(find_card("h200")));
  // 24 layers of 32 see 4,096 keys at most.
  EXPECT_EQ(time.kv_bytes(10'000), 2.0 * 2 * 4096 * (24 * 4096 + 8 * 10'000));
  EXPECT_EQ(time.kv_bytes(1000), 2.0 * 2 * 4096 * 32 * 1000);
  double seen = 0;
  for (int i = 2000; i < 6000; ++i)
    seen += 24 * std::min(i + 1, 4096) + 8 * (i + 1);
  EXPECT_NEAR(time.attention_flops(2000, 6000), 4.0 * 4096 * seen, 1e-6 * 4.0 * 4096 * seen);
}

TEST(RunPlan, JsonHasMemoryByPartAndPhase) {
  const RunPlan plan = planned("Qwen3-8B", machine_of("h20", 8));
  const Json json = json_of(plan);
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["ranks"], 8);
  EXPECT_EQ(json["step_seconds"], plan.step->seconds());
  const Json& memory = json["memory"];
  double update = 0;
  for (const char* when : {"always", "update"})
    for (const auto& [name, bytes] : memory["parts"][when].items())
      update += bytes.get<double>();
  EXPECT_EQ(memory["phases"]["update"], update);
  EXPECT_EQ(json_of(planned("Qwen3-30B-A3B", machine_of("h20", 8)))["step_seconds"], nullptr);
  EXPECT_THROW(planned("Qwen3-8B", {.card = find_card("h20"), .gpus = 12, .per_node = 8}),
               InputError);
}

TEST(Lengths, HaveTheMeanAndTheTailThatWasAskedFor) {
  const Lengths lengths = Lengths::drawn(parse_lengths("mean=1000,p99=4000,prompt=50"), 3);
  double sum = 0, over = 0, count = 0;
  for (const GroupLengths& group : lengths.groups(5000, 8, 1'000'000)) {
    EXPECT_EQ(group.prompt, 50);
    for (const std::int64_t length : group.responses) {
      sum += static_cast<double>(length);
      over += length > 4000 ? 1 : 0;
      ++count;
    }
  }
  EXPECT_NEAR(sum / count, 1000, 20);
  EXPECT_NEAR(over / count, 0.01, 0.002);
  for (const GroupLengths& group : lengths.groups(100, 8, 1050))
    EXPECT_LE(*std::ranges::max_element(group.responses), 1000);
  for (const char* wrong : {"mean=8000", "p99=3", "mean=10,p99=5", "mean=1,p99=100", "mean=x,p99=9",
                            "median=3,p99=4", ""})
    EXPECT_THROW(parse_lengths(wrong), InputError) << wrong;
}

TEST(Lengths, AreThoseThatARunRecorded) {
  const testing::TemporaryFolder run;
  std::filesystem::create_directories(run / "rollouts");
  const auto row = [](const char* prompt, int prompt_tokens, int tokens) {
    return Json({{"prompt_id", prompt},
                 {"prompt_ids", std::vector<int>(static_cast<std::size_t>(prompt_tokens))},
                 {"response_ids", std::vector<int>(static_cast<std::size_t>(tokens))}})
               .dump() +
           "\n";
  };
  write_file_atomically(run / "rollouts/step-000010.jsonl", row("old", 1, 1));
  write_file_atomically(run / "rollouts/step-000020.jsonl",
                        row("a", 5, 100) + row("a", 5, 300) + row("b", 7, 50));
  const std::vector<GroupLengths> groups = Lengths::of_run(run.path(), 0).groups(3, 2, 1000);
  EXPECT_EQ(groups[0].prompt, 5);
  EXPECT_THAT(groups[0].responses, ::testing::ElementsAre(100, 300));
  EXPECT_THAT(groups[1].responses, ::testing::ElementsAre(50, 50));
  EXPECT_THAT(groups[2].responses, ::testing::ElementsAre(100, 300));

  std::filesystem::remove_all(run / "rollouts");
  EXPECT_THROW(Lengths::of_run(run.path(), 0), InputError);
  write_file_atomically(run / "metrics.jsonl",
                        R"({"step":1,"response_length/mean":120.0,"response_length/max":400.0,)"
                        R"("prompt_length/mean":31.0})"
                        "\n");
  EXPECT_THAT(Lengths::of_run(run.path(), 0).text(), HasSubstr("mean 120, 99 % below 400"));
  EXPECT_EQ(Lengths::of_run(run.path(), 0).groups(1, 1, 1000)[0].prompt, 31);
}

}  // namespace
}  // namespace antisd::inline plan
