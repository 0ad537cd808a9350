#include "plan/model_fits.h"

#include <map>

#include <gmock/gmock.h>

namespace antisd::inline plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kGiB = 1 << 30;

std::map<std::string, std::string> texts(double device, double host) {
  std::map<std::string, std::string> texts;
  for (const ModelFit& fit : model_fits({device * kGiB, host * kGiB}, at::kCUDA))
    texts[fit.model] = fit.text();
  return texts;
}

TEST(ModelFits, TheFirstWayForTheLongestSequencesIsTaken) {
  const auto large = texts(139, 120);  // an H200
  EXPECT_EQ(large.at("Qwen3-0.6B"), "whole up to 32K tokens");
  EXPECT_EQ(large.at("Qwen3-4B"), "whole up to 32K tokens");
  EXPECT_THAT(large.at("Qwen3-8B"), AllOf(StartsWith("whole (optim.offload="),
                                          HasSubstr("up to 32K"), Not(HasSubstr("adapters"))));
  EXPECT_THAT(large.at("Qwen3-30B-A3B"), StartsWith("adapters (model.lora.rank=32)"));
  // The host has no room for the state.
  EXPECT_THAT(texts(139, 10).at("Qwen3-8B"), Not(HasSubstr("offload")));
  const auto small = texts(23.5, 60);  // a card for games
  EXPECT_THAT(small.at("Qwen3-4B"), HasSubstr("adapters (model.lora.rank=32"));
  EXPECT_THAT(small.at("Qwen3-30B-A3B"), AllOf(HasSubstr("does not fit"), HasSubstr("at least")));
}

// A model that fits still fits with more memory, for at least as long sequences.
TEST(ModelFits, MoreMemoryNeverAllowsLess) {
  std::map<std::string, std::int64_t> before;
  for (const double gib : {8, 16, 24, 48, 80, 141, 300}) {
    for (const ModelFit& fit : model_fits({gib * kGiB, 1000 * kGiB}, at::kCUDA)) {
      std::int64_t longest = 0;
      for (const FittingWay& way : fit.ways)
        longest = std::max(longest, way.tokens);
      EXPECT_GE(longest, before[fit.model]) << fit.model << " with " << gib << " GiB";
      before[fit.model] = longest;
    }
  }
  EXPECT_EQ(before.at("Qwen3-8B"), 32'768);
}

}  // namespace
}  // namespace antisd::inline plan
