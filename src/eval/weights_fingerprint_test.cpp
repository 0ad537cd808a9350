#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "core/testing.h"
#include "eval/evaluator.h"
#include "model/weights.h"

namespace antisd::inline eval {
namespace {

// Samples of one format are not taken for those of another.
TEST(WeightsFingerprint, TellsTheFormatsOfABaseApart) {
  const auto print_of = [](std::optional<QuantizedKind> base) {
    return weights_fingerprint(load_model(testing::fixture("model/qwen3_gqa_tied"), at::kCPU,
                                          at::kFloat, {.base_format = base}));
  };
  std::set<std::string> prints;
  for (int again = 0; again < 2; ++again) {
    prints.insert(print_of(std::nullopt));
    prints.insert(print_of(QuantizedKind::kInt8));
    prints.insert(print_of(QuantizedKind::kNf4));
  }
  EXPECT_EQ(prints.size(), 3u);
}

}  // namespace
}  // namespace antisd::inline eval
