#include "report/inspect/inspection.h"

#include <cmath>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "report/inspect/testing.h"

namespace antisd::inline report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Inspection with_u(const std::vector<float>& u, std::optional<double> advantage) {
  Inspection inspection;
  inspection.response.ids.assign(u.size(), 1);
  for (const float value : u) {
    inspection.response.student.logp.push_back(-4);
    inspection.response.teacher.logp.push_back(-4 + value);
  }
  inspection.response.group_advantage = advantage;
  inspection.response.lambda = 0.5;
  return inspection;
}

TEST(Inspection, TheMethodsOwnNumbers) {
  // phi(u) and A - lambda phi(u) of known values.
  Inspection inspection = with_u({1, -1, -3, 0}, 2.474867);
  weigh(inspection, testing::method_named("antisd"));
  EXPECT_NEAR(inspection.phi[0], 0.310057253, 1e-8);
  EXPECT_NEAR(inspection.phi[1], -0.189942747, 1e-8);
  EXPECT_NEAR(inspection.advantage[2], 2.636007, 1e-6);
  EXPECT_NEAR(inspection.term[0], -0.5 * 0.310057253, 1e-8);
  EXPECT_EQ(inspection.term[3], 0);
  EXPECT_THAT(inspection.u, ElementsAre(1, -1, -3, 0));

  weigh(inspection, testing::method_named("sd"));
  EXPECT_NEAR(inspection.term[2], -1.5, 1e-12);  // + lambda u
  weigh(inspection, testing::method_named("grpo"));
  EXPECT_THAT(inspection.term, ElementsAre(0, 0, 0, 0));
  EXPECT_NEAR(inspection.phi[0], 0.310057253, 1e-8);
  weigh(inspection, testing::method_named("opd"));
  EXPECT_NEAR(inspection.advantage[0], 0.5, 1e-12);
  weigh(inspection, testing::method_named("antisd-no-teacher"));
  EXPECT_THAT(inspection.u, ElementsAre(1, -1, -3, 0));  // still t - s
  EXPECT_NEAR(inspection.phi[0], (std::log1p(std::exp(4.0)) - std::log(2.0)) / 2, 1e-9);
}

TEST(Inspection, WhatIsNotKnownIsNotANumber) {
  Inspection inspection = with_u({1}, std::nullopt);
  weigh(inspection, testing::method_named("antisd"));
  EXPECT_TRUE(std::isnan(inspection.advantage[0]));
  EXPECT_NEAR(inspection.term[0], -0.155028626, 1e-8);
  weigh(inspection, testing::method_named("antisd-multiplicative"));
  EXPECT_TRUE(std::isnan(inspection.term[0]));
  weigh(inspection, testing::method_named("sdpo"));
  EXPECT_TRUE(std::isnan(inspection.term[0]));

  inspection.response.teacher.logp[0] = -INFINITY;
  weigh(inspection, testing::method_named("antisd"));
  describe(inspection, testing::few_words());
  const Json json = to_json(inspection, std::vector<std::uint8_t>{0});
  EXPECT_TRUE(json["t"][0].is_null());
  EXPECT_TRUE(json["u"][0].is_null());
  EXPECT_TRUE(json["group_advantage"].is_null());
  EXPECT_EQ(json["sum_u"], 0.0);
  EXPECT_EQ(json["running_sum"].dump(), "[[1,0.0]]");
}

TEST(Inspection, TheRunningSumTelescopesToTheLogRatioOfTheResponse) {
  std::mt19937 random(3);
  for (const std::size_t size : {0, 1, 7, 399, 400, 401, 5000}) {
    const Inspection inspection =
        testing::random_inspection(random, "p", size, testing::method_named("antisd"));
    double log_ratio = 0;  // log pi_T(y) - log pi_S(y)
    for (const float t : inspection.response.teacher.logp)
      log_ratio += t;
    for (const float s : inspection.response.student.logp)
      log_ratio -= s;
    const Json json = to_json(inspection, std::vector<std::uint8_t>(size));
    EXPECT_NEAR(json["sum_u"].get<double>(), log_ratio, 1e-5);
    const Json& points = json["running_sum"];
    EXPECT_LE(points.size(), 801u);
    if (size == 0) continue;
    EXPECT_EQ(points.back()[0], size);
    EXPECT_EQ(points.back()[1], json["sum_u"]);
    // Each point is the sum up to there.
    const std::size_t at = points[points.size() / 2][0].get<std::size_t>();
    double sum = 0;
    for (std::size_t i = 0; i < at; ++i)
      sum += inspection.u[i];
    EXPECT_NEAR(points[points.size() / 2][1].get<double>(), sum, 1e-6);
  }
}

Json rollout_row() {
  return Json::parse(
      R"({"step":3,"prompt_id":"p","sample":1,"prompt_ids":[4],"response_ids":[1,3,0],
    "text":"Wait 7","reward":1.0,"reason":"","truncated":false,"group_advantage":0.5,
    "context_source":"peer","teacher_prompt_ids":[4,3],"lambda":0.5,"sampling_logp":[-1,-2,-3],
    "student_logp":[-1.0,-2.0,-0.5],"teacher_logp":[-3.0,-1.0,-0.5],"student_entropy":[1,1,1],
    "teacher_entropy":[2,2,2],"token_advantage":[0.7,0.25,0.5]})");
}

std::optional<Inspection> read(const Json& row) {
  RolloutRow read = read_rollout_row(row, 0.25);
  if (!read.has_scores) return std::nullopt;
  return recorded_inspection(std::move(read), testing::few_words(),
                             testing::method_named("antisd"));
}

TEST(Inspection, ARolloutRowAsTheRunWroteIt) {
  ASSERT_TRUE(is_rollout_row(rollout_row()));
  const auto inspection = read(rollout_row());
  ASSERT_TRUE(inspection);
  EXPECT_EQ(inspection->id, "p");
  EXPECT_EQ(inspection->step, 3);
  EXPECT_EQ(inspection->sample, 1);
  EXPECT_THAT(inspection->tokens, ElementsAre(" Wait", " 7", " [END]"));
  EXPECT_THAT(inspection->special, ElementsAre(false, false, true));
  EXPECT_THAT(inspection->u, ElementsAre(-2, 1, 0));
  EXPECT_THAT(inspection->advantage, ElementsAre(0.7, 0.25, 0.5));  // recorded, not computed
  EXPECT_NEAR(inspection->term[0], 0.2, 1e-12);
  EXPECT_EQ(inspection->prompt, "apple");
  EXPECT_EQ(inspection->teacher_prompt, "apple 7");
  EXPECT_EQ(inspection->source, "peer");
}

// The recorded text shows which tokenizer made the ids; it has no special tokens.
TEST(Inspection, ATokenizerThatReadsTheIdsOtherwiseIsRefused) {
  const auto row = [](const Json& text) {
    return read_rollout_row(
        {{"response_ids", {1, 2, 0}}, {"teacher_prompt_ids", {4}}, {"text", text}});
  };
  const Tokenizer words = testing::few_words();
  EXPECT_NO_THROW(check_text(row("Wait so"), words));
  EXPECT_NO_THROW(check_text(row(nullptr), words));
  EXPECT_THAT(testing::error_of([&] { check_text(row("So what"), words); }),
              ::testing::AllOf(::testing::HasSubstr("\"Wait so\""),
                               ::testing::HasSubstr("the run wrote \"So what\"")));
}

TEST(Inspection, RowsWithoutATeacherAreNoneAndBadOnesAreRefused) {
  Json row = rollout_row();
  row["teacher_logp"] = nullptr;
  EXPECT_FALSE(read(row));
  const auto message = [&](const char* name, const char* value) {
    Json bad = rollout_row();
    bad[name] = Json::parse(value);
    return testing::error_of([&] { read(bad); });
  };
  EXPECT_THAT(message("teacher_logp", "[1,2]"), HasSubstr("'teacher_logp' has 2 numbers for 3"));
  EXPECT_THAT(message("student_logp", "\"x\""), HasSubstr("'student_logp' is not a list"));
  EXPECT_THAT(message("student_logp", "[1,2,\"x\"]"), HasSubstr("not a number"));
  EXPECT_THAT(message("response_ids", "[1,2,-1]"), HasSubstr("not a token id"));
  EXPECT_THAT(message("response_ids", "[1,2,1e99]"), HasSubstr("not a token id"));
  EXPECT_THAT(message("step", "1.5"), HasSubstr("not an integer"));
  EXPECT_THAT(message("reward", "\"1\""), HasSubstr("'reward' is not a number"));

  Json odd = rollout_row();
  odd["student_logp"][1] = nullptr;  // a NaN that was written
  odd["student_entropy"] = nullptr;
  const auto inspection = read(odd);
  ASSERT_TRUE(inspection);
  EXPECT_TRUE(std::isnan(inspection->u[1]));
  Json empty = rollout_row();
  for (const char* name : {"response_ids", "student_logp", "teacher_logp", "student_entropy",
                           "teacher_entropy", "token_advantage"})
    empty[name] = Json::array();
  EXPECT_TRUE(read(empty)->u.empty());
}

}  // namespace
}  // namespace antisd::inline report
