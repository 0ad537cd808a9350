#include "plan/model_names.h"

#include <filesystem>
#include <utility>

#include <gtest/gtest.h>

#include "core/error.h"

namespace antisd::inline plan {
namespace {

void expect_same_shape(const ModelShape& a, const ModelShape& b, const std::string& name) {
  SCOPED_TRACE(name);
  EXPECT_EQ(a.architecture, b.architecture);
  EXPECT_EQ(a.vocabulary, b.vocabulary);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.intermediate, b.intermediate);
  EXPECT_EQ(a.heads, b.heads);
  EXPECT_EQ(a.kv_heads, b.kv_heads);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.max_positions, b.max_positions);
  EXPECT_EQ(a.norm_eps, b.norm_eps);
  EXPECT_EQ(a.tied_head, b.tied_head);
  EXPECT_EQ(a.experts, b.experts);
  EXPECT_EQ(a.experts_per_token, b.experts_per_token);
  EXPECT_EQ(a.expert_intermediate, b.expert_intermediate);
  EXPECT_EQ(a.parameter_count(), b.parameter_count());
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    EXPECT_EQ(a.layers[i].window, b.layers[i].window);
    EXPECT_EQ(a.layers[i].sparse, b.layers[i].sparse);
    EXPECT_EQ(a.layers[i].rope, b.layers[i].rope);
  }
}

// The shapes that need no file, against the models' own config.json.
TEST(ModelNames, AreTheModelsShapes) {
  const std::filesystem::path models =
      std::filesystem::path(ANTISD_SOURCE_DIR) / "../shared/data/models";
  if (!std::filesystem::exists(models)) GTEST_SKIP() << models << " is not here";
  for (const auto& [name, file] :
       {std::pair("Qwen3-8B", "qwen/qwen3-8b_config.json"),
        std::pair("Qwen3-4B-Instruct-2507", "qwen/qwen3-4b-instruct-2507_config.json"),
        std::pair("Qwen3-30B-A3B", "qwen/qwen3-30b-a3b_config.json"),
        std::pair("Olmo-3-7B-Instruct", "olmo3/olmo3-7b-instruct_config.json"),
        std::pair("Olmo-3-7B-Think", "olmo3/olmo3-7b-think_config.json")}) {
    expect_same_shape(*known_shape(std::string("models/") + name), read_model_shape(models / file),
                      name);
  }
}

TEST(ModelNames, OthersNeedAConfigFile) {
  EXPECT_FALSE(known_shape("models/Qwen3-9B"));
  EXPECT_TRUE(known_shape("models/Qwen3-8B/"));
  EXPECT_THROW(shape_of_model("models/Qwen3-9B"), InputError);
  EXPECT_THROW(shape_of_model(""), InputError);
}

}  // namespace
}  // namespace antisd::inline plan
