// Training beside a quantised base: what is trainable is updated, the base never.
#include <map>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "core/testing.h"
#include "dist/in_process.h"
#include "model/weights.h"
#include "optim/adamw.h"
#include "trainer/slow_teacher.h"

namespace antisd::inline trainer {
namespace {

CausalLm model_with_base(std::optional<QuantizedKind> base) {
  return load_model(testing::fixture("model/qwen3_gqa_tied"), at::kCPU, at::kFloat,
                    {.base_format = base});
}

std::map<std::string, at::Tensor> base_of(const CausalLm& model) {
  std::map<std::string, at::Tensor> base;
  for (const Parameter& parameter : model.parameters())
    if (parameter.quantized.defined())
      base[parameter.name()] = dequantize(parameter.quantized, at::kFloat);
  return base;
}

void expect_same_base(const std::map<std::string, at::Tensor>& a,
                      const std::map<std::string, at::Tensor>& b) {
  ASSERT_FALSE(a.empty());
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, values] : a)
    EXPECT_TRUE(values.equal(b.at(name))) << name;
}

// Two steps, alone and as a rank of several, with recomputed layers; a slow teacher follows.
TEST(QuantizedBase, StaysWhileTheRestIsTrained) {
  const std::vector<std::vector<std::int32_t>> sequences = {{1, 2, 3, 4, 5}, {7, 8, 9}};
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    std::vector<at::Tensor> embeddings;
    for (const bool as_rank : {false, true}) {
      CausalLm model = model_with_base(kind);
      const auto before = base_of(model);
      const at::Tensor embedding = model.embedding().detach().clone();
      const auto processes = alone();
      AdamW optimizer(model, {}, *processes,
                      {.gradients = true, .weights = true, .even_alone = as_rank});
      SlowTeacher teacher(model);
      for (int step = 0; step < 2; ++step) {
        const auto work = [&] {
          const PackedBatch batch = pack(sequences, at::kCPU);
          const at::Tensor loss = model.hidden_states(batch, Pass::kRecomputed).sin().sum();
          if (as_rank) optimizer.begin_round(1);
          loss.backward();
          if (as_rank) optimizer.end_round();
        };
        optimizer.make_passes(1, work);
        EXPECT_TRUE(optimizer.step(1e-2).applied);
        teacher.follow(model, optimizer, 0.5);
      }
      EXPECT_FALSE(model.embedding().detach().equal(embedding));
      expect_same_base(before, base_of(model));
      expect_same_base(before, base_of(teacher.model()));
      embeddings.push_back(model.embedding().detach().clone());
    }
    EXPECT_TRUE(embeddings[0].equal(embeddings[1]));
  }
}

}  // namespace
}  // namespace antisd::inline trainer
