// Compares the engine with the model without a cache: every generated token is recomputed by a pass
// over the whole sequence.
#include "inference/rollout_engine.h"

#include <deque>
#include <map>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "inference/fused_decoder.h"
#include "inference/scorer.h"
#include "model/testing.h"
#include "model/weights.h"

namespace antisd::inline inference {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

// The fixtures have few positions; with more, sequences fill several pages.
CausalLm fixture_model(const std::string& name = "qwen3_gqa_tied", double sharper = 1,
                       std::optional<LoraShape> lora = {}) {
  const std::filesystem::path folder = testing::fixture("model") / name;
  ModelShape shape = read_model_shape(folder / "config.json");
  shape.max_positions = 300;
  shape.lora = std::move(lora);
  CausalLm model(shape, at::kCPU, at::kFloat);
  load_weights(model, folder);
  at::Generator generator = at::detail::createCPUGenerator(3);
  for (Parameter& parameter : model.parameters()) {
    if (parameter.spec.is_adapter())
      parameter.value.copy_(at::randn(parameter.spec.sizes, generator, at::kFloat) * 0.3);
  }
  if (sharper != 1) model.parameters().at("final_norm").value.mul_(sharper);
  return model;
}

std::vector<std::int32_t> prompt_of(int seed, int length) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < length; ++i)
    ids.push_back((seed * 13 + i * 7 + i * i * seed) % 40);
  return ids;
}

// Prompts of 1 to 70 tokens in groups of 1 to 3.
std::vector<RolloutRequest> requests_of(int sequences) {
  std::vector<RolloutRequest> requests;
  for (int left = sequences, i = 0; left > 0; ++i) {
    const int samples = std::min(left, 1 + i % 3);
    requests.push_back(
        {prompt_of(i + 1, 1 + (i * 29) % 70), samples, static_cast<std::uint32_t>(i)});
    left -= samples;
  }
  return requests;
}

std::vector<std::vector<std::vector<std::int32_t>>> ids_of(const SampleBatch& batch) {
  std::vector<std::vector<std::vector<std::int32_t>>> ids;
  for (const SampleGroup& group : batch.groups) {
    ids.emplace_back();
    for (const Response& sample : group.samples)
      ids.back().push_back(sample.ids);
  }
  return ids;
}

// Every token must be the most likely one after its prefix, recomputed without a cache.
void expect_greedy(const CausalLm& model, const std::vector<RolloutRequest>& requests,
                   const SampleBatch& batch) {
  const at::NoGradGuard no_grad;
  ASSERT_EQ(batch.groups.size(), requests.size());
  for (std::size_t r = 0; r < requests.size(); ++r) {
    ASSERT_EQ(batch.groups[r].request, r);
    ASSERT_EQ(static_cast<int>(batch.groups[r].samples.size()), requests[r].samples);
    for (const Response& sample : batch.groups[r].samples) {
      EXPECT_EQ(sample.ids, batch.groups[r].samples[0].ids);
      ASSERT_EQ(sample.ids.size(), sample.raw_logp.size());
    }
    const Response& sample = batch.groups[r].samples[0];
    std::vector<std::int32_t> whole = requests[r].prompt_ids;
    whole.insert(whole.end(), sample.ids.begin(), sample.ids.end());
    const at::Tensor hidden = model.hidden_states(pack({&whole, 1}, at::kCPU));
    const at::Tensor logp = at::linear(hidden, model.head().weight).to(at::kDouble).log_softmax(-1);
    for (std::size_t i = 0; i < sample.ids.size(); ++i) {
      const at::Tensor row = logp[static_cast<std::int64_t>(requests[r].prompt_ids.size() + i) - 1];
      const double chosen = row[sample.ids[i]].item<double>();
      EXPECT_GE(chosen, row.max().item<double>() - 1e-5) << "request " << r << " token " << i;
      EXPECT_NEAR(sample.raw_logp[i], chosen, 1e-4);
    }
  }
}

// Runs a step only when its result is taken, as late as depth 1 allows: a page that was freed too
// early is overwritten before it is read.
class DelayedDecoder : public Decoder {
 public:
  explicit DelayedDecoder(std::unique_ptr<Decoder> inner) : inner_(std::move(inner)) {}
  int depth() const override { return 1; }
  bool fits(const DecoderSettings&) const override { return false; }
  void start(int slot, std::int32_t token, std::int32_t position,
             std::span<const std::int32_t> pages, const RandomPlace& place) override {
    std::vector<std::int32_t> kept(pages.begin(), pages.end());
    queue_.push_back(
        [=, this] { return inner_->start(slot, token, position, kept, place), false; });
  }
  void move(int from, int to) override {
    queue_.push_back([=, this] { return inner_->move(from, to), false; });
  }
  void append_page(int slot, std::int32_t page) override {
    queue_.push_back([=, this] { return inner_->append_page(slot, page), false; });
  }
  void launch(int rows) override {
    queue_.push_back([=, this] { return inner_->launch(rows), true; });
  }
  StepTokens take() override {
    for (bool stepped = false; !stepped;) {
      stepped = queue_.front()();
      queue_.pop_front();
    }
    return inner_->take();
  }

 private:
  std::unique_ptr<Decoder> inner_;
  std::deque<std::function<bool()>> queue_;  // returns true for a step
};

std::unique_ptr<Decoder> make_delayed(const CausalLm& model, const KvPool& pool,
                                      const DecoderSettings& settings) {
  return std::make_unique<DelayedDecoder>(make_decoder(model, pool, settings));
}

// Such small models gain nothing from threads, and on a busy machine synchronising threads is slow.
const bool kOneThread = (at::set_num_threads(1), true);

class Engine : public ::testing::TestWithParam<std::string> {};

TEST_P(Engine, GreedyEqualsRecomputingFromScratch) {
  const CausalLm model = fixture_model(GetParam());
  for (const int sequences : {1, 3, 200}) {
    const std::vector<RolloutRequest> requests = requests_of(sequences);
    const RolloutOptions options{.sampling = {.temperature = 0},
                                 .max_new_tokens = sequences == 200 ? 30 : 70};
    const SampleBatch batch =
        RolloutEngine({.prefill_chunk_tokens = 100}).generate(model, requests, options);
    expect_greedy(model, requests, batch);
    EXPECT_EQ(batch.stats.preemptions, 0);
    if (sequences != 3) continue;
    // The other decoder, and one step in flight.
    for (const auto make : {&make_tensor_decoder, &make_delayed}) {
      EngineOptions other;
      other.decoder = make;
      EXPECT_EQ(ids_of(RolloutEngine(other).generate(model, requests, options)), ids_of(batch));
    }
  }
}

// Both decoders add the adapters, and see new values of them.
TEST_P(Engine, AdaptersAreSampledFromAsTheyAreScored) {
  CausalLm model = fixture_model(
      GetParam(), 1,
      LoraShape{.rank = 3,
                .alpha = 4,
                .targets = {"q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
                .experts = true});
  const std::vector<RolloutRequest> requests = requests_of(3);
  const RolloutOptions options{.sampling = {.temperature = 0}, .max_new_tokens = 40};
  RolloutEngine engine;
  const SampleBatch before = engine.generate(model, requests, options);
  expect_greedy(model, requests, before);
  EXPECT_NE(ids_of(before),
            ids_of(RolloutEngine().generate(fixture_model(GetParam()), requests, options)));
  for (Parameter& parameter : model.parameters())
    if (parameter.spec.is_adapter()) parameter.value.mul_(-1.5);
  const SampleBatch after = engine.generate(model, requests, options);
  expect_greedy(model, requests, after);
  EngineOptions other;
  other.decoder = &make_tensor_decoder;
  EXPECT_EQ(ids_of(RolloutEngine(other).generate(model, requests, options)), ids_of(after));
}

// 60 sequences that start with a page or two and grow to five: all are admitted, most are
// preempted.
TEST_P(Engine, ASmallPoolChangesNothing) {
  const CausalLm model = fixture_model(GetParam());
  std::vector<RolloutRequest> requests;
  for (int i = 0; i < 30; ++i)
    requests.push_back({prompt_of(i + 1, 1 + i), 2, static_cast<std::uint32_t>(i)});
  const SampleBatch batch =
      RolloutEngine({.max_sequences = 60,
                     .prefill_chunk_tokens = 64,
                     .kv_bytes = 110 * KvPool::page_bytes(model)})
          .generate(model, requests, {.sampling = {.temperature = 0}, .max_new_tokens = 130});
  EXPECT_GE(batch.stats.preemptions, 30);
  expect_greedy(model, requests, batch);
}

INSTANTIATE_TEST_SUITE_P(Models, Engine, ::testing::ValuesIn(testing::recorded_models()),
                         [](const auto& info) { return info.param; });

TEST(RolloutEngine, ASampleDoesNotDependOnItsCompany) {
  const CausalLm model = fixture_model("qwen3_window", 8);
  const std::vector<RolloutRequest> requests = requests_of(40);
  const RolloutOptions options{.sampling = {.temperature = 0.9, .top_p = 0.95},
                               .max_new_tokens = 60,
                               .stop_ids = {3},
                               .seed = 5,
                               .step = 9};
  const auto ids = ids_of(RolloutEngine().generate(model, requests, options));
  // In reverse order, few at a time, from a small pool, with a step in flight.
  const std::vector<RolloutRequest> reversed(requests.rbegin(), requests.rend());
  auto backwards = ids_of(RolloutEngine().generate(model, reversed, options));
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(backwards, ids);
  EXPECT_EQ(ids_of(RolloutEngine({.max_sequences = 3}).generate(model, requests, options)), ids);
  const std::int64_t page = KvPool::page_bytes(model);
  for (const auto make : {&make_decoder, &make_delayed, &make_tensor_decoder}) {
    EngineOptions small{.max_sequences = 40, .prefill_chunk_tokens = 40, .kv_bytes = 30 * page};
    small.decoder = make;
    const SampleBatch batch = RolloutEngine(small).generate(model, requests, options);
    EXPECT_EQ(ids_of(batch), ids);
    EXPECT_GT(batch.stats.preemptions, 2);
    EXPECT_EQ(batch.stats.surplus_tokens > 0, make == &make_delayed);
  }
  // By itself; another seed, step or prompt index gives other samples.
  RolloutRequest alone = requests[7];
  EXPECT_EQ(ids_of(RolloutEngine().generate(model, {&alone, 1}, options))[0], ids[7]);
  RolloutOptions other = options;
  other.seed = 6;
  EXPECT_NE(ids_of(RolloutEngine().generate(model, requests, other)), ids);
  other = options;
  other.step = 10;
  EXPECT_NE(ids_of(RolloutEngine().generate(model, requests, other)), ids);
  ++alone.prompt;
  EXPECT_NE(ids_of(RolloutEngine().generate(model, {&alone, 1}, options))[0], ids[7]);
}

// Pauses, in calls of any length, change no token: a resumed sample draws the random numbers that
// it would have drawn. Its keys and values are computed in one pass instead of token by token, so
// log-probabilities differ by rounding.
TEST(RolloutEngine, PausesChangeNothing) {
  const CausalLm model = fixture_model("qwen3_window", 8);
  RolloutOptions options{.sampling = {.temperature = 0.9, .top_p = 0.95},
                         .max_new_tokens = 60,
                         .stop_ids = {3},
                         .seed = 5};
  std::vector<RolloutRequest> requests = requests_of(40);
  for (std::size_t r = 0; r < requests.size(); ++r)
    requests[r].step = static_cast<std::uint32_t>(r % 4);
  const SampleBatch whole = RolloutEngine().generate(model, requests, options);
  EXPECT_TRUE(whole.paused.empty());
  const std::int64_t page = KvPool::page_bytes(model);
  for (const auto make : {&make_decoder, &make_delayed, &make_tensor_decoder}) {
    EngineOptions small{.max_sequences = 12, .prefill_chunk_tokens = 40, .kv_bytes = 30 * page};
    small.decoder = make;
    RolloutEngine engine(small);
    std::vector<RolloutRequest> open = requests;
    std::map<std::uint32_t, SampleGroup> ended;
    int calls = 0;
    for (; !open.empty(); ++calls) {
      options.pause_after = 1 + calls * 5 % 13;
      std::size_t told = 0;
      SampleBatch batch = engine.generate(model, open, options, [&](SampleGroup&) { ++told; });
      EXPECT_EQ(told, batch.groups.size());
      EXPECT_EQ(batch.groups.size() + batch.paused.size(), open.size());
      for (SampleGroup& group : batch.groups)
        ended[group.prompt] = std::move(group);
      std::vector<RolloutRequest> left;
      for (SampleGroup& group : batch.paused) {
        left.push_back(open[group.request]);
        left.back().begun = std::move(group.samples);
      }
      open = std::move(left);
    }
    EXPECT_GT(calls, 4);
    ASSERT_EQ(ended.size(), requests.size());
    for (const SampleGroup& expected : whole.groups) {
      const SampleGroup& found = ended.at(expected.prompt);
      ASSERT_EQ(found.samples.size(), expected.samples.size());
      for (std::size_t i = 0; i < expected.samples.size(); ++i) {
        EXPECT_EQ(found.samples[i].ids, expected.samples[i].ids);
        EXPECT_EQ(found.samples[i].finish, expected.samples[i].finish);
        ASSERT_EQ(found.samples[i].sampling_logp.size(), expected.samples[i].ids.size());
        for (std::size_t k = 0; k < expected.samples[i].ids.size(); ++k)
          EXPECT_NEAR(found.samples[i].sampling_logp[k], expected.samples[i].sampling_logp[k],
                      1e-4);
      }
    }
  }
}

// Random weights; products as wide as real models', in multiples of a vector.
CausalLm sparse_model() {
  ModelShape shape = read_model_shape(testing::fixture("model") / "qwen3_moe" / "config.json");
  shape.max_positions = 300;
  shape.expert_intermediate = 32;
  CausalLm model(shape, at::kCPU, at::kFloat);
  at::manual_seed(1);
  for (Parameter& parameter : model.parameters())
    parameter.value.normal_(0, 0.5);
  return model;
}

// To the last bit: ranks sample a group in other company than one process.
TEST(RolloutEngine, LogProbabilitiesDoNotDependOnTheirCompany) {
  for (const bool sparse : {false, true}) {
    const CausalLm model = sparse ? sparse_model() : fixture_model("qwen3_gqa_tied", 8);
    const std::vector<RolloutRequest> requests = requests_of(40);
    const RolloutOptions options{.sampling = {.temperature = 0.9}, .max_new_tokens = 60, .seed = 5};
    const SampleBatch together = RolloutEngine().generate(model, requests, options);
    for (std::size_t r = 0; r < requests.size(); ++r) {
      const SampleBatch alone = RolloutEngine().generate(model, {&requests[r], 1}, options);
      for (std::size_t i = 0; i < alone.groups[0].samples.size(); ++i) {
        const Response &one = alone.groups[0].samples[i], &of_many = together.groups[r].samples[i];
        EXPECT_EQ(one.ids, of_many.ids) << model.shape().experts << " experts";
        EXPECT_EQ(one.raw_logp, of_many.raw_logp)
            << model.shape().experts << " experts, request " << r << ", sample " << i;
      }
    }
  }
}

TEST(RolloutEngine, LogProbabilitiesAreThoseOfScore) {
  const CausalLm model = fixture_model("olmo3_yarn", 4);
  const std::vector<RolloutRequest> requests = requests_of(30);
  const SampleBatch batch = RolloutEngine().generate(
      model, requests, {.sampling = {.temperature = 0.7}, .max_new_tokens = 50, .seed = 2});
  for (std::size_t r = 0; r < requests.size(); ++r) {
    for (const Response& sample : batch.groups[r].samples) {
      const ScoreRequest request{requests[r].prompt_ids, sample.ids};
      const TokenScores raw = score(model, {&request, 1})[0];
      const TokenScores warm = score(model, {&request, 1}, {.temperature = 0.7})[0];
      for (std::size_t i = 0; i < sample.ids.size(); ++i) {
        EXPECT_NEAR(sample.raw_logp[i], raw.logp[i], 1e-4);
        EXPECT_NEAR(sample.sampling_logp[i], warm.logp[i], 1e-4);
      }
    }
  }
}

TEST(RolloutEngine, SampledTokensFollowTheModel) {
  const CausalLm model = fixture_model("llama_mha_tied", 6);
  const RolloutRequest request{prompt_of(3, 20), 4000, 1};
  const SampleBatch batch =
      RolloutEngine().generate(model, {&request, 1}, {.max_new_tokens = 1, .seed = 4});
  EXPECT_EQ(batch.stats.prefill_tokens, 19);
  const at::NoGradGuard no_grad;
  const at::Tensor hidden = model.hidden_states(pack({&request.prompt_ids, 1}, at::kCPU));
  const at::Tensor p = at::linear(hidden[19], model.head().weight).to(at::kDouble).softmax(-1);
  std::vector<double> counts(p.size(0), 0);
  for (const Response& sample : batch.groups[0].samples)
    ++counts[sample.ids[0]];
  double statistic = 0;
  for (std::size_t id = 0; id < counts.size(); ++id) {
    const double mean = 4000 * p[static_cast<std::int64_t>(id)].item<double>();
    statistic += (counts[id] - mean) * (counts[id] - mean) / mean;
  }
  const double degrees = static_cast<double>(counts.size()) - 1;
  EXPECT_LT(statistic, degrees + 4 * std::sqrt(2 * degrees));
}

TEST(RolloutEngine, GroupsComeOutAsTheyEndAndInOrderAtLast) {
  const CausalLm model = fixture_model("qwen3_gqa_tied", 6);
  std::vector<RolloutRequest> requests = requests_of(30);
  std::vector<std::size_t> order;
  const RolloutOptions options{.max_new_tokens = 200, .stop_ids = {3, 5}, .seed = 1};
  const SampleBatch batch = RolloutEngine({.max_sequences = 8})
                                .generate(model, requests, options, [&](SampleGroup& group) {
                                  order.push_back(group.request);
                                  for (const Response& sample : group.samples) {
                                    const bool stopped =
                                        sample.ids.back() == 3 || sample.ids.back() == 5;
                                    EXPECT_EQ(sample.finish == FinishReason::kStop, stopped);
                                    EXPECT_TRUE(stopped || sample.ids.size() == 200);
                                    for (std::size_t i = 0; i + 1 < sample.ids.size(); ++i)
                                      EXPECT_TRUE(sample.ids[i] != 3 && sample.ids[i] != 5);
                                  }
                                });
  EXPECT_EQ(order.size(), requests.size());
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::int64_t tokens = 0, prompts = 0;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    EXPECT_EQ(batch.groups[r].request, r);
    prompts += static_cast<std::int64_t>(requests[r].prompt_ids.size()) - 1;
    for (const Response& sample : batch.groups[r].samples)
      tokens += static_cast<std::int64_t>(sample.ids.size());
  }
  EXPECT_EQ(batch.stats.new_tokens, tokens);
  EXPECT_EQ(batch.stats.prefill_tokens, prompts);  // each prompt once
}

TEST(RolloutEngine, StopsWhereItIsToldTo) {
  const CausalLm model = fixture_model();
  const std::vector<RolloutRequest> requests = requests_of(6);
  RolloutEngine engine;
  const SampleBatch by_callback = engine.generate(
      model, requests, {.max_new_tokens = 20, .stops = [](std::span<const std::int32_t> ids) {
                          return ids.size() == 4;
                        }});
  for (const SampleGroup& group : by_callback.groups)
    for (const Response& sample : group.samples) {
      EXPECT_EQ(sample.ids.size(), 4u);
      EXPECT_EQ(sample.finish, FinishReason::kStop);
    }
  // A flag set in the middle: finished samples are returned, and the engine still works.
  std::atomic<bool> flag = false;
  RolloutOptions options{.max_new_tokens = 200, .stop_ids = {3}, .interrupted = &flag};
  const SampleBatch stopped =
      engine.generate(model, requests, options, [&](SampleGroup&) { flag = true; });
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_GE(stopped.groups.size(), 1u);
  EXPECT_LT(stopped.groups.size(), requests.size());
  flag = false;
  engine.release();
  EXPECT_EQ(engine.generate(model, requests, options).groups.size(), requests.size());
}

TEST(RolloutEngine, RefusesWhatCannotBeDone) {
  const CausalLm model = fixture_model();
  const auto refused = [&](std::vector<RolloutRequest> requests, RolloutOptions options = {},
                           EngineOptions engine = {}) {
    return error_of([&] { RolloutEngine(engine).generate(model, requests, options); });
  };
  EXPECT_THAT(refused({}), HasSubstr("there are no prompts"));
  EXPECT_THAT(refused({{{}, 1, 0}}), HasSubstr("the prompt is empty"));
  EXPECT_THAT(refused({{{1}, 0, 0}}), HasSubstr("0 samples of a prompt"));
  EXPECT_THAT(refused({{{1, 4000}, 1, 0}}), HasSubstr("id 4000 at position 1"));
  EXPECT_THAT(refused({{{-1}, 1, 0}}), HasSubstr("id -1"));
  EXPECT_THAT(refused({{prompt_of(1, 300), 1, 0}}), HasSubstr("no room for one more"));
  EXPECT_THAT(refused({{prompt_of(1, 20), 1, 0}}, {.max_sequence_tokens = 20}),
              HasSubstr("shorten the prompt or raise the limit"));
  EXPECT_THAT(refused({{{1}, 1, 0}}, {.sampling = {.top_p = 0}}), HasSubstr("top-p is 0"));
  const std::int64_t page = KvPool::page_bytes(model);
  EXPECT_THAT(refused({{{1}, 1, 0}}, {.max_new_tokens = 250}, {.kv_bytes = 4 * page}),
              HasSubstr("hold a sequence of 97 tokens; one may need 251"));
  const RolloutRequest request{{1}, 1, 0};
  EXPECT_EQ(RolloutEngine({.kv_bytes = 4 * page})
                .generate(model, {&request, 1}, {.max_new_tokens = 96})
                .stats.new_tokens,
            96);
}

TEST(RolloutEngine, AModelThatComputesNoNumbersIsAnError) {
  CausalLm model = fixture_model();
  model.parameters().at("layers.0.qkv").value.fill_(std::nan(""));
  const RolloutRequest request{{1, 2}, 1, 0};
  EXPECT_THAT(error_of([&] {
                RolloutEngine().generate(model, {&request, 1}, {});
              }),
              HasSubstr("logits are not finite"));
}

TEST(RolloutEngine, TheCacheLeavesMemoryForStepsAndForOthers) {
  EXPECT_EQ(cache_budget(at::kCUDA, 1000, 10), 850);
  EXPECT_EQ(cache_budget(at::kCUDA, 1000, 400), 600);
  EXPECT_EQ(cache_budget(at::kCUDA, 100, 400), 0);
  EXPECT_EQ(cache_budget(at::kCPU, 1000, 10), 500);
  EXPECT_EQ(cache_budget(at::kCPU, -5, 10), 0);
}

}  // namespace
}  // namespace antisd::inline inference
