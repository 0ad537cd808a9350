// Scoring and sampling with a quantised base, against the plain model that holds the dequantised
// numbers.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "core/testing.h"
#include "inference/finite_scores.h"
#include "inference/rollout_engine.h"
#include "inference/scorer.h"
#include "model/weights.h"

namespace antisd::inline inference {
namespace {

TEST(QuantizedSampling, AgreesWithTheDequantizedModel) {
  for (const char* name : {"qwen3_gqa_tied", "qwen3_moe", "olmo3_yarn"}) {
    const std::filesystem::path folder = testing::fixture("model") / name;
    for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
      const CausalLm model = load_model(folder, at::kCPU, at::kFloat, {.base_format = kind});
      CausalLm plain = load_model(folder, at::kCPU, at::kFloat);
      for (Parameter& parameter : plain.parameters()) {
        const Parameter& own = model.parameters().at(parameter.name());
        if (own.quantized.defined()) parameter.value.copy_(dequantize(own.quantized, at::kFloat));
      }
      const std::vector<RolloutRequest> requests = {{{1, 2, 3, 4, 5, 6, 7}, 3, 0}, {{9, 8}, 2, 1}};
      const RolloutOptions options{.max_new_tokens = 16, .seed = 3};
      const SampleBatch batch = RolloutEngine().generate(model, requests, options);
      const SampleBatch expected = RolloutEngine().generate(plain, requests, options);
      for (std::size_t r = 0; r < requests.size(); ++r) {
        for (std::size_t s = 0; s < batch.groups[r].samples.size(); ++s) {
          const Response &sample = batch.groups[r].samples[s],
                         &other = expected.groups[r].samples[s];
          EXPECT_EQ(sample.ids, other.ids) << name;
          const ScoreRequest scored{requests[r].prompt_ids, sample.ids};
          const TokenScores scores = score(model, {&scored, 1})[0];
          const TokenScores plain_scores = score(plain, {&scored, 1})[0];
          for (std::size_t i = 0; i < sample.ids.size(); ++i) {
            EXPECT_NEAR(sample.raw_logp[i], scores.logp[i], 1e-4) << name;
            EXPECT_NEAR(scores.logp[i], plain_scores.logp[i], 1e-4) << name;
            EXPECT_NEAR(scores.entropy[i], plain_scores.entropy[i], 1e-4) << name;
          }
        }
      }
    }
  }
}

TEST(QuantizedSampling, ABadScaleIsFoundByName) {
  CausalLm model = load_model(testing::fixture("model") / "qwen3_gqa_tied", at::kCPU, at::kFloat,
                              {.base_format = QuantizedKind::kNf4});
  EXPECT_EQ(find_non_finite_weight(model), "");
  const Parameter& down = model.parameters().at("layers.1.down");
  down.quantized.scales[3][0] = INFINITY;
  EXPECT_EQ(find_non_finite_weight(model), "model.layers.1.mlp.down_proj.weight");
}

}  // namespace
}  // namespace antisd::inline inference
