#include "trainer/disk_plan.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "model/architecture.h"
#include "trainer/testing.h"

namespace antisd::inline trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::uintmax_t bytes_below(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") bytes += entry.file_size();
  return bytes;
}

TEST(DiskPlan, ACheckpointIsAsLargeAsItSays) {
  for (const char* method : {"method.name=antisd", "method.name=sdpo"}) {
    testing::SmallTraining training({"train.steps=1", method, "method.sdpo.teacher_ema=0.05",
                                     "rollout.max_sequence_tokens=40"});
    ASSERT_TRUE(training.run());
    const DiskPlan plan = plan_disk(training.state->model.shape(), training.config, at::kFloat,
                                    training.method.slow_teacher());
    const auto saved = static_cast<double>(
        bytes_below(training.recorder->directory() / "checkpoints/step-000001"));
    EXPECT_LE(plan.checkpoint_bytes, saved) << method;
    EXPECT_NEAR(plan.checkpoint_bytes, saved, 24'000) << method << ": the headers come on top";
  }
}

TEST(DiskPlan, CountsWhatIsStillToCome) {
  testing::TemporaryFolder folder;
  testing::make_small_model(folder / "model");
  const ModelShape shape = read_model_shape(folder / "model/config.json");
  const auto count = [&](const std::vector<std::string>& settings, std::int64_t step = 0) {
    RunConfig config;
    config.options().assign("record.dir=" + (folder / "runs/a").string());
    for (const std::string& setting : settings)
      config.options().assign(setting);
    return plan_disk(shape, config, at::kBFloat16, false, step).checkpoints;
  };
  EXPECT_EQ(count({"train.steps=100", "checkpoint.every=10", "checkpoint.keep=2"}), 3);
  EXPECT_EQ(count({"train.steps=100", "checkpoint.keep=4", "checkpoint.keep_best=x"}), 6);
  EXPECT_EQ(count({"train.steps=100", "checkpoint.every=0", "checkpoint.keep=9"}), 1);
  EXPECT_EQ(count({"train.steps=15", "checkpoint.every=10", "checkpoint.keep=9"}), 2);
  EXPECT_EQ(count({"train.steps=15", "checkpoint.every=10"}, 15), 0);
  fs::create_directories(folder / "runs/a/checkpoints/step-000010");
  EXPECT_EQ(count({"train.steps=100", "checkpoint.every=10", "checkpoint.keep=2"}, 10), 2);
}

TEST(DiskPlan, SaysWhatIsMissingInNumbers) {
  RunConfig config;
  config.options().assign("record.dir=/nowhere/deeper");
  ModelShape shape;
  shape.architecture = find_architecture("qwen3");
  shape.vocabulary = std::int64_t{1} << 40;  // an embedding that no disk holds
  shape.hidden = 1 << 20;
  const DiskPlan plan = plan_disk(shape, config, at::kBFloat16, false);
  EXPECT_FALSE(plan.suffices());
  EXPECT_THAT(plan.warning(), AllOf(HasSubstr("3 checkpoints of"), HasSubstr("; / has"),
                                    HasSubstr("free"), HasSubstr("lower checkpoint.keep")));
}

}  // namespace
}  // namespace antisd::inline trainer
