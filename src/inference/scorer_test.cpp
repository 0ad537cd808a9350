#include "inference/scorer.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/jsonl.h"
#include "model/weights.h"

namespace antisd::inline inference {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

CausalLm tiny_model() {
  return load_model(testing::fixture("model/qwen3_gqa_tied"), at::kCPU, at::kFloat);
}

// log-softmax of the whole logits, one sequence at a time, in double.
TokenScores brute_force(const CausalLm& model, const ScoreRequest& request, double temperature) {
  const at::NoGradGuard no_grad;
  std::vector<std::int32_t> ids = request.prompt_ids;
  ids.insert(ids.end(), request.response_ids.begin(), request.response_ids.end());
  const std::vector<std::vector<std::int32_t>> alone = {ids};
  const at::Tensor hidden = model.hidden_states(pack(alone, at::kCPU)).to(at::kDouble);
  const at::Tensor logp =
      (at::linear(hidden, model.head().weight.to(at::kDouble)) / temperature).log_softmax(-1);
  const at::Tensor entropy = -(logp.exp() * logp).sum(-1);
  TokenScores scores;
  for (std::size_t i = 0; i < request.response_ids.size(); ++i) {
    const auto row = static_cast<std::int64_t>(request.prompt_ids.size() + i) - 1;
    scores.logp.push_back(logp[row][request.response_ids[i]].item<float>());
    scores.entropy.push_back(entropy[row].item<float>());
  }
  return scores;
}

// s and t are a brute-force log-softmax at every response position, after prompts of 7 and 23
// tokens.
TEST(Score, IsIndexedByResponsePositionWhateverThePrompt) {
  const CausalLm model = tiny_model();
  const auto ids = [](int count, int seed) {
    std::vector<std::int32_t> values;
    for (int i = 0; i < count; ++i)
      values.push_back((seed + 11 * i) % 40);
    return values;
  };
  const std::vector<std::int32_t> response = ids(9, 5);
  const std::vector<ScoreRequest> requests = {{ids(7, 1), response}, {ids(23, 2), response}};
  for (const double temperature : {1.0, 0.7}) {
    const auto scores = score(model, requests, {.temperature = temperature});
    for (std::size_t r = 0; r < requests.size(); ++r) {
      const TokenScores expected = brute_force(model, requests[r], temperature);
      ASSERT_EQ(scores[r].logp.size(), response.size());
      for (std::size_t i = 0; i < response.size(); ++i) {
        EXPECT_NEAR(scores[r].logp[i], expected.logp[i], 1e-5);
        EXPECT_NEAR(scores[r].entropy[i], expected.entropy[i], 1e-5);
      }
    }
  }
  // Shifting the teacher's ids by one changes the scores.
  ScoreRequest shifted = requests[1];
  std::rotate(shifted.prompt_ids.begin(), shifted.prompt_ids.begin() + 1, shifted.prompt_ids.end());
  EXPECT_GT(
      std::abs(score(model, {&shifted, 1})[0].logp[4] - score(model, {&requests[1], 1})[0].logp[4]),
      1e-4);
}

TEST(Score, SharedPrefixesAndBatchSizesChangeNothing) {
  const CausalLm model = tiny_model();
  std::vector<ScoreRequest> requests;
  for (int r = 0; r < 12; ++r) {
    ScoreRequest request;
    for (int i = 0; i < 17; ++i)
      request.prompt_ids.push_back((7 * i) % 40);
    if (r % 3 == 1) request.prompt_ids.push_back(3);
    for (int i = 0; i <= r; ++i)
      request.response_ids.push_back((r + 5 * i) % 40);
    requests.push_back(request);
  }
  const auto apart = score(model, requests, {.pack = {.share = false}});
  const auto together = score(model, requests);
  const auto small = score(model, requests, {.max_batch_tokens = 40});
  for (std::size_t r = 0; r < requests.size(); ++r) {
    for (std::size_t i = 0; i < apart[r].logp.size(); ++i) {
      EXPECT_NEAR(apart[r].logp[i], together[r].logp[i], 1e-5);
      EXPECT_NEAR(apart[r].entropy[i], together[r].entropy[i], 1e-5);
      EXPECT_NEAR(apart[r].logp[i], small[r].logp[i], 1e-5);
    }
  }
}

// Prompts of three groups alternate, long enough for several batches: each thread gets some.
TEST(Score, ThreadsChangeNothing) {
  const CausalLm model = tiny_model();
  std::vector<ScoreRequest> requests;
  for (int r = 0; r < 300; ++r) {
    ScoreRequest request;
    for (int i = 0; i < 20 + r % 3; ++i)
      request.prompt_ids.push_back((3 + r % 3 + 7 * i) % 40);
    for (int i = 0; i < 5 + r % 5; ++i)
      request.response_ids.push_back((r + 5 * i) % 40);
    requests.push_back(request);
  }
  const int threads_before = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = score(model, requests);
  for (const int threads : {2, 4}) {
    at::set_num_threads(threads);
    const auto several = score(model, requests);
    for (std::size_t r = 0; r < requests.size(); ++r) {
      ASSERT_EQ(several[r].logp.size(), requests[r].response_ids.size());
      for (std::size_t i = 0; i < several[r].logp.size(); ++i) {
        EXPECT_NEAR(several[r].logp[i], alone[r].logp[i], 1e-6);
        EXPECT_NEAR(several[r].entropy[i], alone[r].entropy[i], 1e-6);
      }
    }
  }
  at::set_num_threads(threads_before);
  for (const std::size_t r : {0, 151, 299}) {
    const TokenScores expected = brute_force(model, requests[r], 1);
    for (std::size_t i = 0; i < expected.logp.size(); ++i)
      EXPECT_NEAR(alone[r].logp[i], expected.logp[i], 1e-5);
  }
}

TEST(Score, RefusesWhatCannotBeScored) {
  const CausalLm model = tiny_model();
  const auto refused = [&](ScoreRequest request) {
    return error_of([&] { score(model, {&request, 1}); });
  };
  EXPECT_THAT(refused({{}, {1}}), HasSubstr("the prompt is empty"));
  EXPECT_THAT(refused({{1}, {}}), HasSubstr("the response is empty"));
  EXPECT_THAT(refused({{1, 2000}, {1}}), HasSubstr("the prompt holds id 2000 at position 1"));
  EXPECT_THAT(refused({{1}, {-1}}), HasSubstr("the response holds id -1"));
  const auto too_long = static_cast<std::size_t>(model.shape().max_positions + 1);
  EXPECT_THAT(refused({std::vector<std::int32_t>(too_long, 1), {1}}),
              HasSubstr("max_position_embeddings"));
}

// Real trained Qwen3 models that add two ten-digit numbers: greedy continuation must be the sum.
TEST(Score, TrainedAddersAdd) {
  const std::filesystem::path adders = testing::shared_data("weights/qwen3_adder");
  ANTISD_NEEDS_SHARED(adders);
  std::vector<Json> cases;
  JsonlReader reader(adders / "addition_cases.jsonl");
  for (Json row; reader.next(row);)
    cases.push_back(row);
  for (const char* name : {"122_lbfgs", "146_lbfgs", "228"}) {
    const CausalLm model = load_model(adders / name, at::kCPU, at::kFloat);
    const at::NoGradGuard no_grad;
    // Teacher forcing: the most likely token at every position must be the expected one.
    std::vector<std::vector<std::int32_t>> sequences;
    for (const Json& row : cases) {
      std::vector<std::int32_t>& ids =
          sequences.emplace_back(row["prompt_ids"].get<std::vector<std::int32_t>>());
      for (const Json& id : row["expected_ids"])
        ids.push_back(id.get<std::int32_t>());
    }
    const PackedBatch batch = pack(sequences, at::kCPU);
    const at::Tensor likeliest =
        at::linear(model.hidden_states(batch), model.head().weight).argmax(-1);
    int right = 0;
    for (std::size_t s = 0; s < cases.size(); ++s) {
      const std::size_t prompt = cases[s]["prompt_ids"].size();
      bool all = true;
      for (std::size_t i = prompt; i < sequences[s].size(); ++i) {
        all &= likeliest[batch.rows[s][i - 1]].item<std::int32_t>() == sequences[s][i];
      }
      right += all ? 1 : 0;
    }
    EXPECT_EQ(right, 200) << name;
  }
}

}  // namespace
}  // namespace antisd::inline inference
