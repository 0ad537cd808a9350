#include "run/checkpoint/disk_plan.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/safetensors.h"
#include "model/architecture.h"
#include "run/checkpoint/testing.h"

namespace antisd::inline run {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::size_t tensor_bytes_below(const fs::path& folder) {
  std::size_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const SafetensorsFile file(entry.path());
    for (const SafetensorsTensor& tensor : file.tensors())
      bytes += tensor.data.size();
  }
  return bytes;
}

TEST(DiskPlan, ACheckpointIsAsLargeAsItSays) {
  const testing::SmallRun average;  // a slow teacher's, in fp32
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    testing::SmallRun run("qwen3_moe_mixed", dtype);
    run.train_step();
    for (const CausalLm* teacher : {static_cast<const CausalLm*>(nullptr), &average.model}) {
      const testing::TemporaryFolder folder;
      const fs::path saved = save_checkpoint(
          folder.path(), 1, {run.model, run.optimizer, run.origin, teacher}, run.state());
      const DiskPlan plan = plan_disk(run.model.shape(), RunConfig(), dtype, teacher != nullptr);
      EXPECT_EQ(plan.checkpoint_bytes, static_cast<double>(tensor_bytes_below(saved)));
    }
  }
}

TEST(DiskPlan, CountsWhatIsStillToCome) {
  testing::TemporaryFolder folder;
  const ModelShape shape =
      read_model_shape(testing::fixture("model") / "qwen3_moe_mixed/config.json");
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
}  // namespace antisd::inline run
