// The live engine against the rollout engine: the same prompt, settings and seed give the same
// response, whatever else is decoded, joins or leaves.
#include "inference/live_engine.h"

#include <map>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "inference/fused_decoder.h"
#include "inference/rollout_engine.h"
#include "model/testing.h"
#include "model/weights.h"

namespace antisd::inline inference {
namespace {

using testing::error_of;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const bool kLiveOneThread = (at::set_num_threads(1), true);

CausalLm live_model(const std::string& name) {
  const std::filesystem::path folder = testing::fixture("model") / name;
  ModelShape shape = read_model_shape(folder / "config.json");
  shape.max_positions = 300;
  CausalLm model(shape, at::kCPU, at::kFloat);
  load_weights(model, folder);
  return model;
}

// What a request got.
struct Got {
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::vector<float>> logp;
  std::vector<std::vector<std::vector<Alternative>>> alternatives;
  std::vector<int> finish;  // by sample, -1: not ended
  bool operator==(const Got& other) const { return ids == other.ids && finish == other.finish; }
};

LiveRequest request_of(int i, Got& got) {
  LiveRequest request;
  for (int k = 0; k <= (i * 29) % 70; ++k)
    request.prompt_ids.push_back((i * 13 + k * 7 + k * k * i) % 40);
  request.samples = 1 + i % 3;
  request.prompt = static_cast<std::uint32_t>(i % 2);
  request.sampling.settings = {.temperature = i % 4 == 0 ? 0.0 : 0.5 + 0.1 * i,
                               .top_p = i % 3 == 0 ? 0.9 : 1.0,
                               .top_k = i % 5 == 0 ? 7 : 0};
  request.sampling.rng = CounterRng(static_cast<std::uint64_t>(i * i), RandomStream::kSampling);
  request.sampling.alternatives = i % 2 == 0 ? 3 : 0;
  request.max_new_tokens = 20 + i;
  request.stop_ids = {3};
  got.ids.resize(static_cast<std::size_t>(request.samples));
  got.logp.resize(got.ids.size());
  got.alternatives.resize(got.ids.size());
  got.finish.assign(got.ids.size(), -1);
  request.on_token = [&got](int sample, const LiveToken& token) {
    got.ids[sample].push_back(token.id);
    got.logp[sample].push_back(token.raw_logp);
    got.alternatives[sample].emplace_back(token.alternatives.begin(), token.alternatives.end());
    return false;
  };
  request.on_end = [&got](int sample, FinishReason finish) {
    got.finish[sample] = static_cast<int>(finish);
  };
  return request;
}

// The same request through the rollout engine.
Got reference_of(const CausalLm& model, int i) {
  Got got;
  const LiveRequest request = request_of(i, got);
  const RolloutRequest same{request.prompt_ids, request.samples, request.prompt};
  const SampleBatch batch = RolloutEngine().generate(model, {&same, 1},
                                                     {.sampling = request.sampling.settings,
                                                      .max_new_tokens = request.max_new_tokens,
                                                      .stop_ids = request.stop_ids,
                                                      .seed = static_cast<std::uint64_t>(i * i)});
  got.ids.clear();
  got.logp.clear();
  got.finish.clear();
  for (const Response& sample : batch.groups[0].samples) {
    got.ids.push_back(sample.ids);
    got.logp.push_back(sample.raw_logp);
    got.finish.push_back(static_cast<int>(sample.finish));
  }
  return got;
}

void run_all(LiveEngine& engine) {
  while (engine.step()) {
  }
}

class Live : public ::testing::TestWithParam<std::string> {};

// With few slots and pages, so that requests wait and are preempted.
TEST_P(Live, EqualsTheRolloutEngineInAnyCompany) {
  constexpr int kRequests = 24;
  const CausalLm model = live_model(GetParam());
  std::vector<Got> expected;
  for (int i = 0; i < kRequests; ++i)
    expected.push_back(reference_of(model, i));
  for (const bool tensors : {false, true}) {
    LiveOptions options{.max_sequences = 9, .kv_bytes = 40 * KvPool::page_bytes(model)};
    if (tensors) options.decoder = &make_tensor_decoder;
    LiveEngine engine(model, options);
    EXPECT_EQ(engine.context(), 300);
    std::vector<Got> got(kRequests);
    for (int i = 0; i < kRequests; ++i) {
      engine.add(request_of(i, got[i]));
      for (int step = 0; step < 3 + i % 5; ++step)
        engine.step();
    }
    run_all(engine);
    for (int i = 0; i < kRequests; ++i) {
      EXPECT_EQ(got[i].ids, expected[i].ids) << i;
      EXPECT_EQ(got[i].finish, expected[i].finish) << i;
      for (std::size_t s = 0; s < got[i].logp.size(); ++s)
        EXPECT_THAT(got[i].logp[s], Pointwise(FloatNear(1e-4f), expected[i].logp[s])) << i;
      // Products by panels sum each row alone, whatever the other rows are.
      if (!tensors && fused_decode_suits(model)) {
        EXPECT_EQ(got[i].logp, expected[i].logp) << i;
      }
    }
    EXPECT_EQ(engine.running() + engine.waiting(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Live,
                         ::testing::Values("qwen3_gqa_tied", "olmo3_yarn", "qwen3_moe"),
                         [](const auto& info) { return info.param; });

TEST(LiveEngine, ACancelledRequestLeavesTheOthersAsTheyAre) {
  const CausalLm model = live_model("qwen3_gqa_tied");
  LiveEngine engine(model, {.max_sequences = 4});
  std::vector<Got> got(12);
  std::map<int, std::uint64_t> tickets;
  for (int i = 0; i < 12; ++i)
    tickets[i] = engine.add(request_of(i, got[i]));
  for (int step = 0; step < 3; ++step)
    engine.step();
  for (const int i : {0, 1, 5, 11}) {  // running, waiting
    engine.cancel(tickets[i]);
    engine.cancel(tickets[i]);  // once more changes nothing
  }
  const std::vector<std::size_t> before = {got[0].ids[0].size(), got[5].ids[0].size()};
  run_all(engine);
  EXPECT_EQ(got[0].ids[0].size(), before[0]) << "no token after the end";
  EXPECT_EQ(got[5].ids[0].size(), before[1]);
  EXPECT_EQ(got[0].finish[0], -1);
  for (const int i : {2, 3, 4, 6, 7, 8, 9, 10})
    EXPECT_EQ(got[i], reference_of(model, i)) << i;
  engine.cancel(tickets[2]);  // ended: nothing
  EXPECT_FALSE(engine.step());
}

TEST(LiveEngine, AlternativesAreTheLikeliest) {
  const CausalLm model = live_model("qwen3_gqa_tied");
  for (const auto make : {&make_individual_decoder, &make_tensor_decoder}) {
    LiveOptions options{.max_sequences = 4};
    options.decoder = make;
    LiveEngine engine(model, options);
    Got greedy;
    engine.add(request_of(4, greedy));  // temperature 0, 3 alternatives
    run_all(engine);
    const std::size_t tokens = greedy.ids[0].size();
    ASSERT_GT(tokens, 2u);
    for (std::size_t t = 0; t < tokens; ++t) {
      const std::vector<Alternative>& three = greedy.alternatives[0][t];
      ASSERT_EQ(three.size(), 3u);
      EXPECT_EQ(three[0].id, greedy.ids[0][t]) << "the sampled token is the likeliest";
      EXPECT_EQ(three[0].raw_logp, greedy.logp[0][t]);
      EXPECT_GE(three[0].raw_logp, three[1].raw_logp);
      EXPECT_GE(three[1].raw_logp, three[2].raw_logp);
    }
    // The log-probability of the second, recomputed without a cache.
    std::vector<std::int32_t> whole = request_of(4, greedy).prompt_ids;
    const at::NoGradGuard no_grad;
    const at::Tensor hidden = model.hidden_states(pack({&whole, 1}, at::kCPU));
    const at::Tensor row =
        at::linear(hidden, model.head().weight).to(at::kDouble).log_softmax(-1)[-1];
    const auto [values, ids] = row.topk(3);
    // request_of() cleared nothing: the first token's alternatives are still there.
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(greedy.alternatives[0][0][k].id, ids[k].item<std::int64_t>());
      EXPECT_NEAR(greedy.alternatives[0][0][k].raw_logp, values[k].item<double>(), 1e-4);
    }
  }
}

TEST(LiveEngine, TheCallerEndsAResponse) {
  const CausalLm model = live_model("qwen3_gqa_tied");
  LiveEngine engine(model, {});
  Got got;
  LiveRequest request = request_of(6, got);
  request.stop_ids = {};
  int tokens = 0;
  request.on_token = [&](int, const LiveToken&) { return ++tokens == 5; };
  engine.add(std::move(request));
  run_all(engine);
  EXPECT_EQ(tokens, 5);
  EXPECT_EQ(got.finish[0], static_cast<int>(FinishReason::kStop));
}

TEST(LiveEngine, WhatCannotBeMet) {
  const CausalLm model = live_model("qwen3_gqa_tied");
  const LiveEngine engine(model, {.max_sequence_tokens = 50});
  EXPECT_EQ(engine.context(), 50);
  LiveRequest request{.prompt_ids = std::vector<std::int32_t>(50, 1)};
  EXPECT_THAT(error_of([&] { engine.check(request); }), HasSubstr("a limit of 50"));
  request.prompt_ids = {1, 1000};
  EXPECT_THAT(error_of([&] { engine.check(request); }), HasSubstr("id 1000"));
  request.prompt_ids = {1};
  engine.check(request);
  request.sampling.settings.top_p = 2;
  EXPECT_THAT(error_of([&] { engine.check(request); }), HasSubstr("top-p"));
  // A cache that holds less than the model's positions.
  EXPECT_EQ(LiveEngine(model, {.kv_bytes = 3 * KvPool::page_bytes(model)}).context(), 65);
  EXPECT_THAT(error_of([&] { LiveEngine(model, {.kv_bytes = 1}); }), HasSubstr("no memory"));
}

TEST(LiveEngine, LogitsThatAreNotFiniteEndOneRequest) {
  CausalLm model = live_model("llama_mha_tied");
  model.parameters().at("embedding").value[7].fill_(std::numeric_limits<float>::infinity());
  LiveEngine engine(model, {});
  Got bad, good;
  std::string problem;
  LiveRequest request = request_of(2, bad);
  request.prompt_ids = {7};
  request.on_failure = [&](const std::string& text) { problem = text; };
  engine.add(std::move(request));
  run_all(engine);
  EXPECT_THAT(problem, HasSubstr("not finite"));
  EXPECT_EQ(bad.finish[0], -1);
}

}  // namespace
}  // namespace antisd::inline inference
