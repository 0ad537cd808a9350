#include "report/inspect/analysis.h"

#include <cmath>

#include <gmock/gmock.h>

#include "report/inspect/testing.h"

namespace antisd::inline report {
namespace {

WordList built_in() {
  return WordList::parse(WordList::default_text(), "built in");
}

// One token of all responses, for sums by brute force.
struct Seen {
  std::string problem, kind;
  std::size_t response, position, length;
  TokenId id;
  double s, t, u, term, advantage;
};

class Aggregates : public ::testing::Test {
 protected:
  Aggregates() {
    std::mt19937 random(11);
    const std::vector<std::string> names = {"deliberation", "structure", "numbers", "other"};
    const std::vector<std::string> kind_of_id = {"other",     "deliberation", "structure",
                                                 "numbers",   "other",        "other",
                                                 "structure", "deliberation"};
    for (std::size_t r = 0; r < 30; ++r) {
      const std::size_t length = random() % 90;
      const Inspection one = testing::random_inspection(random, fmt::format("p{}", r % 7), length,
                                                        testing::method_named("antisd"));
      analysis_.add(one);
      for (std::size_t i = 0; i < length; ++i)
        seen_.push_back(
            {one.id, kind_of_id[static_cast<std::size_t>(one.response.ids[i])], r, i, length,
             one.response.ids[i], one.response.student.logp[i], one.response.teacher.logp[i],
             static_cast<double>(one.response.teacher.logp[i]) - one.response.student.logp[i],
             one.term[i], one.advantage[i]});
    }
    summary_ = analysis_.summary({.top = 3});
  }

  // Count, mean and interval of the tokens that `chosen` accepts; problems are the clusters.
  void expect_mean(const Json& row, const std::function<bool(const Seen&)>& chosen) {
    std::map<std::string, std::pair<double, double>> clusters;
    double count = 0, sum = 0;
    for (const Seen& token : seen_) {
      if (!chosen(token)) continue;
      ++count;
      sum += token.u;
      clusters[token.problem].first += token.u;
      clusters[token.problem].second += 1;
    }
    const double mean = sum / count, m = static_cast<double>(clusters.size());
    double squares = 0;
    for (const auto& [problem, cluster] : clusters)
      squares += std::pow(cluster.first - cluster.second * mean, 2);
    EXPECT_EQ(row["count"], count) << row;
    EXPECT_NEAR(row["mean"].get<double>(), mean, 1e-6);
    if (clusters.size() < 2) {
      EXPECT_TRUE(row["low"].is_null());
      return;
    }
    const double points[] = {0, 12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691};
    const double half = points[clusters.size() - 1] * std::sqrt(m / (m - 1) * squares) / count;
    EXPECT_NEAR(row["low"].get<double>(), mean - half, 1e-5 * half + 1e-6);
    EXPECT_NEAR(row["high"].get<double>(), mean + half, 1e-5 * half + 1e-6);
  }

  Analysis analysis_{built_in(), testing::few_words()};
  std::vector<Seen> seen_;
  Json summary_;
};

TEST_F(Aggregates, MeansOfTokensKindsAndPositions) {
  EXPECT_EQ(summary_["tokens"], seen_.size());
  EXPECT_EQ(summary_["problems"], 7);
  EXPECT_EQ(summary_["clusters"], "problems");
  expect_mean(summary_["u"], [](const Seen&) { return true; });
  for (const Json& row : summary_["kinds"])
    expect_mean(row, [&](const Seen& token) { return token.kind == row["kind"]; });
  for (const char* list : {"highest", "lowest"}) {
    ASSERT_EQ(summary_[list].size(), 3u);
    for (const Json& row : summary_[list])
      expect_mean(row, [&](const Seen& token) { return token.id == row["id"]; });
  }
  for (const Json& row : summary_["position"])
    expect_mean(row, [&](const Seen& token) {
      return row["from"].get<std::size_t>() <= token.position &&
             token.position < row["to"].get<std::size_t>();
    });
  EXPECT_EQ(summary_["position"].back()["to"], 128);
  ASSERT_EQ(summary_["relative_position"].size(), 20u);
  for (const Json& row : summary_["relative_position"])
    expect_mean(row, [&](const Seen& token) {
      const double at = static_cast<double>(token.position) / static_cast<double>(token.length);
      return row["from"].get<double>() - 1e-9 <= at && at < row["to"].get<double>() - 1e-9;
    });
}

TEST_F(Aggregates, TheListsAreTheExtremes) {
  std::map<TokenId, std::pair<double, int>> sums;
  for (const Seen& token : seen_) {
    sums[token.id].first += token.u;
    ++sums[token.id].second;
  }
  std::vector<std::pair<double, TokenId>> order;
  for (const auto& [id, sum] : sums)
    order.emplace_back(sum.first / sum.second, id);
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(summary_["lowest"][i]["id"], order[i].second);
    EXPECT_EQ(summary_["highest"][i]["id"], order[order.size() - 1 - i].second);
  }
  const Json rare = analysis_.summary({.top = 20, .min_count = sums[1].second});
  for (const Json& row : rare["highest"])
    EXPECT_GE(row["count"], sums[1].second);
}

TEST_F(Aggregates, HistogramDensityTailsAndTerm) {
  const auto count = [&](auto&& chosen) {
    return std::count_if(seen_.begin(), seen_.end(), chosen);
  };
  const Json& histogram = summary_["histogram"];
  for (std::size_t b = 0; b < histogram["counts"].size(); ++b) {
    const double from = -10 + 0.25 * static_cast<double>(b);
    EXPECT_EQ(histogram["counts"][b], count([&](const Seen& token) {
                const float u = static_cast<float>(token.u);
                return from <= u && u < from + 0.25;
              }))
        << from;
  }
  EXPECT_EQ(histogram["below"], count([](const Seen& token) { return token.u < -10; }));
  for (const Json& cell : summary_["density"]["cells"]) {
    double sum = 0;
    const auto of_cell = [&](const Seen& token) {
      return std::min(19.0, std::floor(20 * std::exp(token.s))) == cell["s"] &&
             std::min(19.0, std::floor(20 * std::exp(token.t))) == cell["t"];
    };
    for (const Seen& token : seen_)
      sum += of_cell(token) ? token.u : 0;
    ASSERT_EQ(cell["count"], count(of_cell));
    EXPECT_NEAR(cell["mean"].get<double>(), sum / cell["count"].get<double>(), 1e-6);
  }
  const double tokens = static_cast<double>(seen_.size());
  EXPECT_NEAR(summary_["u"]["tails"][1]["below"].get<double>(),
              count([](const Seen& token) { return token.u <= -2; }) / tokens, 1e-6);
  EXPECT_NEAR(summary_["u"]["negative"].get<double>(),
              count([](const Seen& token) { return token.u < 0; }) / tokens, 1e-6);
  std::vector<double> sorted;
  for (const Seen& token : seen_)
    sorted.push_back(token.u);
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  EXPECT_NEAR(summary_["u"]["quantiles"][4]["u"].get<double>(),
              sorted.size() % 2 ? sorted[middle] : (sorted[middle] + sorted[middle - 1]) / 2, 1e-5);

  double term = 0, group = 0, flipped = 0, graded = 0;
  for (const Seen& token : seen_) {
    const double of_group = std::round(token.advantage - token.term);  // -1, 0 or 1
    term += std::abs(token.term);
    group += std::abs(of_group);
    graded += of_group != 0;
    flipped += of_group != 0 && std::signbit(of_group) != std::signbit(token.advantage);
  }
  EXPECT_NEAR(summary_["term"]["ratio"].get<double>(), term / group, 1e-6);
  EXPECT_NEAR(summary_["term"]["flipped"].get<double>(), flipped / graded, 1e-6);
  EXPECT_NEAR(summary_["term"]["alone"].get<double>(), 1 - graded / tokens, 1e-6);
}

TEST(Analysis, OneProblemHasItsResponsesAsClusters) {
  Analysis analysis(built_in(), testing::few_words());
  std::mt19937 random(5);
  const Method method = testing::method_named("antisd");
  for (int i = 0; i < 4; ++i)
    analysis.add(testing::random_inspection(random, "p", 10, method));
  EXPECT_EQ(analysis.summary()["clusters"], "responses");
  EXPECT_EQ(analysis.summary()["u"]["clusters"], 4);
  analysis.add(testing::random_inspection(random, "q", 10, method));
  EXPECT_EQ(analysis.summary()["u"]["clusters"], 2);
  EXPECT_EQ(analysis.summary()["u"]["count"], 50);
}

TEST(Analysis, NothingAndNotANumberDoNotBreakIt) {
  Analysis analysis(built_in(), testing::few_words());
  EXPECT_TRUE(analysis.summary()["u"]["mean"].is_null());
  std::mt19937 random(5);
  const Method method = testing::method_named("antisd");
  analysis.add(testing::random_inspection(random, "p", 0, method));
  Inspection bad = testing::random_inspection(random, "p", 3, method);
  bad.response.teacher.logp = {-INFINITY, NAN, -1};
  weigh(bad, method);
  analysis.add(bad);
  const Json summary = analysis.summary();
  EXPECT_EQ(summary["tokens"], 1);
  EXPECT_EQ(summary["tokens_not_finite"], 2);
  EXPECT_TRUE(summary["u"]["low"].is_null());
}

}  // namespace
}  // namespace antisd::inline report
