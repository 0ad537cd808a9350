// Acceptance value 9: the gate's steps, and what it reads.
#include "algo/gate.h"

#include <cmath>

#include <gmock/gmock.h>

#include "algo/gate_signal.h"
#include "core/testing.h"

namespace antisd {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

const std::vector<double> kWarmup = {.40, .42, .38, .41, .39};

GateRules paper_rules() {
  return {.signal = GateSignal::kEntropy, .warmup_steps = 5, .min_warm = .01};
}

std::vector<int> observe_all(EntropyGate& gate, const std::vector<double>& values) {
  std::vector<int> opened;
  for (const double value : values)
    opened.push_back(gate.observe(value).open() ? 1 : 0);
  return opened;
}

TEST(EntropyGate, OneSided) {
  EntropyGate gate(paper_rules());
  EXPECT_THAT(observe_all(gate, kWarmup), ElementsAre(0, 0, 0, 0, 0));
  const GateReading reading = gate.observe(.373);
  EXPECT_TRUE(reading.open());
  EXPECT_EQ(reading.h_warm, .40);
  EXPECT_DOUBLE_EQ(reading.tau, .372);
  EXPECT_EQ(reading.statistic, .373);
  EXPECT_THAT(observe_all(gate, {.371, .39, .3999, .40, .373}), ElementsAre(0, 0, 0, 1, 1));
}

TEST(EntropyGate, TwoSided) {
  GateRules rules = paper_rules();
  rules.band_close = 1.07;
  EntropyGate gate(rules);
  observe_all(gate, kWarmup);
  EXPECT_THAT(observe_all(gate, {.43, .41, .40, .37, .43, .39}), ElementsAre(0, 0, 1, 0, 0, 1));
}

TEST(EntropyGate, ClosedHighFallsToClosedLow) {
  GateRules rules = paper_rules();
  rules.band_close = 1.07;
  EntropyGate gate(rules);
  observe_all(gate, kWarmup);
  gate.observe(.5);
  EXPECT_EQ(gate.observe(.30).position, GatePosition::kClosedLow);
  EXPECT_EQ(gate.observe(.39).position, GatePosition::kClosedLow);
}

TEST(EntropyGate, AnInterruptionAnywhereChangesNothing) {
  std::vector<double> values = kWarmup;
  for (const double value : {.373, .371, .39, .3999, .40, .373, .2, .41})
    values.push_back(value);
  for (const bool previous_step : {false, true}) {
    GateRules rules = paper_rules();
    rules.previous_step = previous_step;
    EntropyGate whole(rules);
    const std::vector<int> expected = observe_all(whole, values);
    for (std::size_t cut = 0; cut <= values.size(); ++cut) {
      EntropyGate first(rules), second(rules);
      std::vector<int> opened = observe_all(first, {values.begin(), values.begin() + cut});
      second.restore(first.state());
      for (const int g : observe_all(second, {values.begin() + cut, values.end()}))
        opened.push_back(g);
      EXPECT_EQ(opened, expected) << "cut at " << cut;
    }
  }
}

TEST(EntropyGate, RefusesAStateThatIsNotItsOwn) {
  EntropyGate gate(paper_rules());
  observe_all(gate, kWarmup);
  GateRules longer = paper_rules();
  longer.warmup_steps = 9;
  EntropyGate other(longer);
  EXPECT_THAT(error_of([&] { other.restore(gate.state()); }), HasSubstr("warmup_steps"));
  GateState strange = EntropyGate(paper_rules()).state();
  strange.position = GatePosition::kOpen;
  EXPECT_THAT(error_of([&] { gate.restore(strange); }), HasSubstr("does not fit"));
}

TEST(EntropyGate, ThePreviousStepDecides) {
  GateRules rules = paper_rules();
  rules.previous_step = true;
  EntropyGate gate(rules);
  observe_all(gate, kWarmup);
  EXPECT_THAT(observe_all(gate, {.371, .40, .39, .39}), ElementsAre(1, 0, 1, 1));
}

TEST(EntropyGate, WithoutASignalItOpensAfterTheWarmUp) {
  EntropyGate ungated({.signal = GateSignal::kNone, .warmup_steps = 2});
  const double nothing = std::nan("");
  EXPECT_THAT(observe_all(ungated, {nothing, nothing, nothing, nothing}), ElementsAre(0, 0, 1, 1));
  EntropyGate at_once({.signal = GateSignal::kNone, .warmup_steps = 0});
  EXPECT_TRUE(at_once.observe(nothing).open());
}

TEST(EntropyGate, AStepWithNothingToMeasureChangesNothing) {
  const double nothing = std::nan("");
  EntropyGate gate(paper_rules());
  // The warm-up waits for its five values.
  EXPECT_THAT(observe_all(gate, {nothing, .4, .4, nothing, .4, .4, nothing}),
              ElementsAre(0, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(gate.state().steps, 4);
  EXPECT_THAT(observe_all(gate, {.4, nothing, .3, nothing, .4}), ElementsAre(0, 1, 0, 0, 1));
}

TEST(EntropyGate, NumbersOfAnotherSignalAreNotGoneOnWith) {
  GateRules mean = paper_rules();
  mean.statistic = GateStatistic::kMean;
  EntropyGate gate(paper_rules()), other(mean);
  observe_all(gate, {.004, .004, .004, .004});
  other.restore(gate.state());  // a warm-up begins anew
  EXPECT_EQ(other.state(), EntropyGate(mean).state());
  observe_all(other, kWarmup);
  EXPECT_EQ(other.observe(.4).h_warm, .4);
  EXPECT_THAT(error_of([&] { gate.restore(other.state()); }),
              HasSubstr("watched mean entropy, now it is to watch median entropy"));
  // Without a gate there is nothing to compare, and nothing keeps it shut.
  EXPECT_FALSE(other.observe(.3).open());
  EntropyGate none({.signal = GateSignal::kNone, .warmup_steps = 5});
  none.restore(other.state());
  EXPECT_TRUE(none.observe(std::nan("")).open());
}

TEST(EntropyGate, ATinyWarmUpAsksForAnotherStatistic) {
  EntropyGate gate(paper_rules());
  EXPECT_THAT(error_of([&] { observe_all(gate, std::vector(5, .004)); }),
              HasSubstr("statistic = \"mean\""));
  GateRules accepted = paper_rules();
  accepted.min_warm = 0;
  EntropyGate other(accepted);
  observe_all(other, std::vector(5, .004));
  EXPECT_TRUE(other.observe(.004).open());
}

TEST(EntropyGate, TauHasAFloor) {
  GateRules rules = {.signal = GateSignal::kTeacherPerplexity,
                     .warmup_steps = 1,
                     .close_floor = 1.01,
                     .reopen = 1.07};
  EntropyGate near_one(rules), above(rules);
  near_one.observe(1.05);
  EXPECT_EQ(near_one.observe(1.05).tau, 1.01);
  above.observe(1.2);
  EXPECT_DOUBLE_EQ(above.observe(1.2).tau, 1.116);
  EXPECT_FALSE(above.observe(1.1).open());
  EXPECT_FALSE(above.observe(1.28).open());
  EXPECT_TRUE(above.observe(1.29).open());
}

TEST(GateSignal, MedianOfAllValues) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
}

const std::vector<TokenScores> kTeacher = {{.logp = {-1, -1}, .entropy = {.5F, 1}},
                                           {.logp = {}, .entropy = {}},
                                           {.logp = {-2}, .entropy = {3}}};
const std::vector<TokenScores> kStudent = {{.logp = {-.5F, -.25F, -.75F}, .entropy = {2, 4, 9}}};

double statistic(Method method) {
  return gate_statistic(method.gate, gate_values(method, kTeacher, kStudent));
}

TEST(GateSignal, ReadsWhatTheMethodSays) {
  Method method;
  method.gate.signal = GateSignal::kEntropy;
  EXPECT_EQ(statistic(method), 1);  // over tokens, not over responses
  method.gate.statistic = GateStatistic::kMean;
  EXPECT_EQ(statistic(method), 1.5);
  method.teacher = false;
  EXPECT_EQ(statistic(method), 5);
  method.gate.signal = GateSignal::kStudentPerplexity;
  EXPECT_NEAR(statistic(method), std::exp(.5), 1e-12);
  method.gate.signal = GateSignal::kTeacherPerplexity;
  EXPECT_NEAR(statistic(method), (std::exp(1) + std::exp(2)) / 2, 1e-6);
  method.gate.max_perplexity = 3;  // e^2 is left out
  EXPECT_NEAR(statistic(method), std::exp(1), 1e-6);
  method.gate.max_perplexity = 1;
  EXPECT_TRUE(std::isnan(statistic(method)));
  method.gate.signal = GateSignal::kNone;
  EXPECT_TRUE(std::isnan(statistic(method)));
}

TEST(GateSignal, SummarisesTheTeacher) {
  const TeacherSummary summary = summarise_teacher(kTeacher);
  EXPECT_EQ(summary.entropy_mean, 1.5);
  EXPECT_EQ(summary.entropy_median, 1);
  EXPECT_NEAR(summary.perplexity, std::exp(4.0 / 3), 1e-9);
}

}  // namespace
}  // namespace antisd
