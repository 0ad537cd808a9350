// Sampling against the rules in plain double precision: frequencies by chi-square, and the drawn
// token itself.
#include "ops/sampling.h"

#include <numeric>

#include <gmock/gmock.h>

#include "core/rng.h"
#include "core/testing.h"

namespace antisd::inline ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The distribution after temperature and filters: sorted, cut, normalised, in double.
std::vector<double> distribution(const std::vector<float>& logits, const SamplingSettings& s) {
  const std::size_t n = logits.size();
  const auto normalise = [](std::vector<double> p) {
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& x : p)
      x /= sum;
    return p;
  };
  const double top = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p(n);
  for (std::size_t i = 0; i < n; ++i)
    p[i] = std::exp((logits[i] - top) / s.temperature);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (s.top_k > 0)
    for (std::size_t rank = s.top_k; rank < n; ++rank)
      p[order[rank]] = 0;
  p = normalise(p);
  if (s.top_p < 1) {
    double before = 0;
    for (const std::size_t id : order) {
      const double mass = p[id];
      if (before >= s.top_p) p[id] = 0;
      before += mass;
    }
    p = normalise(p);
  }
  const double likeliest = *std::max_element(p.begin(), p.end());
  for (double& x : p)
    if (x < s.min_p * likeliest) x = 0;
  return normalise(p);
}

SampledTokens draw(const std::vector<float>& logits, std::int64_t vocabulary,
                   const SamplingSettings& settings, const std::vector<double>& noise) {
  const auto rows = static_cast<std::int64_t>(noise.size());
  const at::Tensor one = at::tensor(at::ArrayRef<float>(logits), at::kFloat);
  return sample(one.expand({rows, one.size(0)}).contiguous(), vocabulary, settings,
                at::tensor(at::ArrayRef<double>(noise), at::kDouble));
}

std::vector<float> test_logits(std::size_t n) {
  const CounterRng rng(5, RandomStream::kInitialise);
  std::vector<float> logits;
  for (std::size_t i = 0; i < n; ++i)
    logits.push_back(
        static_cast<float>(4 * rng.uniform({.position = static_cast<std::uint32_t>(i)}) - 2));
  return logits;
}

TEST(Sampling, FrequenciesFollowTheDistribution) {
  const std::vector<float> logits = test_logits(40);
  const CounterRng rng(11, RandomStream::kSampling);
  std::vector<double> noise;
  for (std::uint32_t i = 0; i < 40'000; ++i)
    noise.push_back(rng.uniform({.step = 2, .prompt = i % 7, .sample = i % 5, .position = i}));
  for (const SamplingSettings& settings : std::vector<SamplingSettings>{
           {},
           {.temperature = 0.6},
           {.temperature = 2.5},
           {.top_p = 0.7},
           {.top_k = 9},
           {.min_p = 0.2},
           {.temperature = 0.8, .top_p = 0.9, .min_p = 0.05, .top_k = 20}}) {
    const std::vector<double> expected = distribution(logits, settings);
    const SampledTokens drawn = draw(logits, 40, settings, noise);
    std::vector<double> counts(40, 0);
    for (std::size_t i = 0; i < noise.size(); ++i) {
      const int id = drawn.ids[static_cast<std::int64_t>(i)].item<int>();
      ++counts[id];
    }
    double statistic = 0, degrees = -1;
    for (std::size_t id = 0; id < 40; ++id) {
      const double mean = expected[id] * static_cast<double>(noise.size());
      if (mean == 0) {
        EXPECT_EQ(counts[id], 0) << id;
        continue;
      }
      statistic += (counts[id] - mean) * (counts[id] - mean) / mean;
      ++degrees;
    }
    // Mean and deviation of chi-square.
    EXPECT_LT(statistic, degrees + 4 * std::sqrt(2 * degrees)) << settings.temperature;
    // Draws that are too even are suspicious too.
    EXPECT_GT(statistic, degrees - 4 * std::sqrt(2 * degrees));
    for (std::int64_t i = 0; i < 200; ++i) {
      const int id = drawn.ids[i].item<int>();
      EXPECT_NEAR(drawn.logp[i].item<double>(), std::log(expected[id]), 1e-5);
      EXPECT_NEAR(drawn.raw_logp[i].item<double>(), std::log(distribution(logits, {})[id]), 1e-5);
    }
  }
}

// The drawn token is the inverse of the cumulative distribution in the order of ids, also for a
// vocabulary of many blocks.
TEST(Sampling, TheNoiseDecidesTheToken) {
  const std::vector<float> logits = test_logits(5003);
  std::vector<double> noise;
  for (int i = 0; i < 400; ++i)
    noise.push_back((i + 0.5) / 400);
  noise.insert(noise.end(), {0.0, 0x1.fffffffffffffp-1});
  for (const SamplingSettings& settings : std::vector<SamplingSettings>{
           {}, {.temperature = 0.5}, {.top_p = 0.8}, {.top_k = 500}, {.min_p = 0.5}}) {
    const std::vector<double> p = distribution(logits, settings);
    const SampledTokens drawn = draw(logits, 5003, settings, noise);
    for (std::size_t i = 0; i < noise.size(); ++i) {
      const int id = drawn.ids[static_cast<std::int64_t>(i)].item<int>();
      EXPECT_GT(p[id], 0);
      const double before = std::accumulate(p.begin(), p.begin() + id, 0.0);
      EXPECT_LE(before, noise[i] + 1e-5);
      EXPECT_GE(before + p[id], noise[i] - 1e-5);
    }
  }
}

std::vector<int> kept(const std::vector<float>& logits, const SamplingSettings& settings) {
  std::vector<double> noise;
  for (int i = 0; i < 2000; ++i)
    noise.push_back((i + 0.5) / 2000);
  const SampledTokens drawn =
      draw(logits, static_cast<std::int64_t>(logits.size()), settings, noise);
  std::vector<int> ids;
  for (std::int64_t i = 0; i < 2000; ++i) {
    const int id = drawn.ids[i].item<int>();
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;  // in the order of ids, since the noise increases
}

TEST(Sampling, EdgesOfTheFilters) {
  const auto logs = [](std::vector<double> p) {
    std::vector<float> logits;
    for (const double x : p)
      logits.push_back(static_cast<float>(std::log(x)));
    return logits;
  };
  const std::vector<float> logits = logs({0.1, 0.5, 0.15, 0.25});
  EXPECT_THAT(kept(logits, {.top_p = 1e-9}), ElementsAre(1));
  EXPECT_THAT(kept(logits, {.top_p = 0.499}), ElementsAre(1));
  EXPECT_THAT(kept(logits, {.top_p = 0.501}), ElementsAre(1, 3));
  EXPECT_THAT(kept(logits, {.top_p = 0.749}), ElementsAre(1, 3));
  EXPECT_THAT(kept(logits, {.top_p = 0.751}), ElementsAre(1, 2, 3));
  EXPECT_THAT(kept(logits, {.top_p = 0.999}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(kept(logits, {.top_p = 1}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(kept(logits, {.min_p = 0.31}), ElementsAre(1, 3));
  EXPECT_THAT(kept(logits, {.min_p = 0.29}), ElementsAre(1, 2, 3));
  EXPECT_THAT(kept(logits, {.min_p = 1}), ElementsAre(1));
  EXPECT_THAT(kept(logits, {.top_k = 1}), ElementsAre(1));
  EXPECT_THAT(kept(logits, {.top_k = 100}), ElementsAre(0, 1, 2, 3));
  // After top-k the mass is that of the two kept tokens: 0.5 of 0.75 reaches 0.6.
  EXPECT_THAT(kept(logits, {.top_p = 0.6, .top_k = 2}), ElementsAre(1));
  // Of equal logits, the lower ids are kept.
  const std::vector<float> equal(6, 1.5f);
  EXPECT_THAT(kept(equal, {.top_k = 2}), ElementsAre(0, 1));
  EXPECT_THAT(kept(equal, {.top_p = 0.49}), ElementsAre(0, 1, 2));
  EXPECT_THAT(kept(equal, {.temperature = 0}), ElementsAre(0));
}

TEST(Sampling, GreedyPaddingAndWildLogits) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {1, 3, 3, -inf, 9, 9};  // the last two are padding
  const SampledTokens greedy = draw(logits, 4, {.temperature = 0}, {0.99});
  EXPECT_EQ(greedy.ids[0].item<int>(), 1);
  EXPECT_EQ(greedy.logp[0].item<float>(), 0);
  EXPECT_NEAR(greedy.raw_logp[0].item<double>(), -std::log(2 + std::exp(-2.0)), 1e-6);
  EXPECT_EQ(draw(logits, 4, {.temperature = 1e9}, {0.999999}).ids[0].item<int>(), 2);
  EXPECT_EQ(
      draw({1e30f, -1e30f, 0}, 3, {.temperature = 1e-4, .top_p = 0.5}, {0.5}).ids[0].item<int>(),
      0);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), inf}) {
    for (const SamplingSettings& settings :
         std::vector<SamplingSettings>{{}, {.temperature = 0}, {.top_p = 0.5, .top_k = 2}}) {
      const SampledTokens drawn = draw({1, bad, 2}, 3, settings, {0.5});
      EXPECT_TRUE(std::isnan(drawn.raw_logp[0].item<float>()));
      EXPECT_GE(drawn.ids[0].item<int>(), 0);
      EXPECT_LT(drawn.ids[0].item<int>(), 3);
    }
  }
}

TEST(Sampling, RefusesImpossibleSettings) {
  const auto refused = [](const SamplingSettings& settings) {
    return testing::error_of([&] { check_sampling(settings); });
  };
  EXPECT_THAT(refused({.temperature = -1}), HasSubstr("the temperature is -1; give 0 (greedy)"));
  EXPECT_THAT(refused({.temperature = std::nan("")}), HasSubstr("the temperature is nan"));
  EXPECT_THAT(refused({.top_p = 0}), HasSubstr("top-p is 0"));
  EXPECT_THAT(refused({.top_p = 1.5}), HasSubstr("top-p is 1.5"));
  EXPECT_THAT(refused({.min_p = -0.1}), HasSubstr("min-p"));
  EXPECT_THAT(refused({.top_k = -2}), HasSubstr("top-k is -2"));
}

}  // namespace
}  // namespace antisd::inline ops
