// The gate opens and closes at tau = close H_warm and reopen H_warm: sequences of S_k with known
// positions, and the gate's input from a batch.
#include "algo/gate.h"

#include <cmath>

#include <gmock/gmock.h>

#include "algo/gate_signal.h"
#include "core/testing.h"

namespace antisd::inline algo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

const std::vector<GateInput> kWarmup = {.40, .42, .38, .41, .39};

GateRules paper_rules() {
  return {.signal = GateSignal::kEntropy, .warmup_steps = 5, .min_warm = .01};
}

GateRules auto_rules() {
  GateRules rules = paper_rules();
  rules.statistic = GateStatistic::kAuto;
  return rules;
}

std::vector<int> observe_all(EntropyGate& gate, const std::vector<GateInput>& values) {
  std::vector<int> opened;
  for (const GateInput& value : values)
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
  std::vector<GateInput> values = kWarmup;
  for (const double value : {.373, .371, .39, .3999, .40, .373, .2, .41})
    values.emplace_back(value);
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
  other.restore(gate.state());  // the warm-up starts again
  EXPECT_EQ(other.state(), EntropyGate(mean).state());
  observe_all(other, kWarmup);
  EXPECT_EQ(other.observe(.4).h_warm, .4);
  EXPECT_THAT(error_of([&] { gate.restore(other.state()); }),
              HasSubstr("watched mean entropy, and now it should watch median entropy"));
  // Without a gate there is nothing to compare, and nothing keeps it closed.
  EXPECT_FALSE(other.observe(.3).open());
  EntropyGate none({.signal = GateSignal::kNone, .warmup_steps = 5});
  none.restore(other.state());
  EXPECT_TRUE(none.observe(std::nan("")).open());
}

TEST(EntropyGate, ATinyWarmUpLeavesTheGateOpenOrStops) {
  EntropyGate open(paper_rules());
  EXPECT_THAT(observe_all(open, std::vector<GateInput>(5, .004)), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(calibration_text(paper_rules(), open.state()),
              AllOf(HasSubstr("(median entropy) was 0.004"), HasSubstr("stays open")));
  // Nothing closes it, neither high nor low values.
  EXPECT_THAT(observe_all(open, {.004, 1e-6, 9.0, 0.0}), ElementsAre(1, 1, 1, 1));
  EXPECT_TRUE(open.observe(.001).too_small);
  EXPECT_EQ(open.state().h_warm, .004);

  GateRules strict = paper_rules();
  strict.on_too_small = OnTooSmall::kStop;
  EntropyGate gate(strict);
  EXPECT_THAT(error_of([&] { observe_all(gate, std::vector<GateInput>(5, .004)); }),
              AllOf(HasSubstr("too small to gate on"), HasSubstr("statistic = \"auto\"")));
  GateRules accepted = paper_rules();
  accepted.min_warm = 0;
  EntropyGate other(accepted);
  observe_all(other, std::vector<GateInput>(5, .004));
  EXPECT_TRUE(other.observe(.004).open());
}

// Medians and means of five steps: the warm-up value is the median of the five, 0.004 / 0.009 /
// 0.01 / 0.2 and so on, by hand.
TEST(EntropyGate, AutoChoosesOnce) {
  struct Case {
    std::vector<GateInput> warmup;
    GateStatistic chosen;
    double h_warm;
    bool too_small;
  };
  const std::vector<Case> cases = {
      // The median is large enough, though two of its values are not.
      {{{.4, .6}, {.001, .5}, {.3, .7}, {.002, .6}, {.35, .8}}, GateStatistic::kMedian, .3, false},
      // Exactly min_warm is enough.
      {{{.01, .5}, {.01, .5}, {.01, .5}, {.01, .5}, {.01, .5}}, GateStatistic::kMedian, .01, false},
      // Too small, though two of its values are not: the mean.
      {{{.009, .2}, {.4, .3}, {.008, .1}, {.4, .25}, {.007, .21}},
       GateStatistic::kMean,
       .21,
       false},
      // Both too small.
      {{{.004, .009}, {.005, .006}, {.004, .005}, {.003, .008}, {.002, .007}},
       GateStatistic::kMean,
       .007,
       true}};
  for (const Case& one : cases) {
    EntropyGate gate(auto_rules());
    EXPECT_EQ(chosen_statistic(gate.state()), std::nullopt);
    EXPECT_THAT(observe_all(gate, one.warmup), ElementsAre(0, 0, 0, 0, 0));
    EXPECT_EQ(chosen_statistic(gate.state()), one.chosen);
    EXPECT_EQ(gate.state().h_warm, one.h_warm);
    EXPECT_EQ(gate.state().too_small, one.too_small);
    EXPECT_EQ(gate.state().warmup.size(), 5u);
    EXPECT_EQ(gate.state().warmup_means.size(), 5u);
  }
}

TEST(EntropyGate, AutoThenDecidesByTheChosenAlone) {
  const std::vector<GateInput> forced(5, {.0004, .40});  // most tokens are certain
  EntropyGate gate(auto_rules());
  observe_all(gate, forced);
  EXPECT_THAT(calibration_text(auto_rules(), gate.state()),
              AllOf(HasSubstr("median of the entropies was 0.0004 and their mean 0.4"),
                    HasSubstr("reads the mean entropy from here on")));
  // The paper's trigger on the means, whatever the medians do; .372 closes.
  const GateReading first = gate.observe({5, .373});
  EXPECT_TRUE(first.open());
  EXPECT_EQ(first.statistic, .373);
  EXPECT_DOUBLE_EQ(first.tau, .372);
  EXPECT_THAT(observe_all(gate, {{5, .371}, {5, .39}, {0, .3999}, {0, .40}, {0, .373}}),
              ElementsAre(0, 0, 0, 1, 1));

  EntropyGate spread(auto_rules());  // with the median it behaves as without auto
  observe_all(spread, {{.40, 9}, {.42, 9}, {.38, 9}, {.41, 9}, {.39, 9}});
  EXPECT_THAT(
      observe_all(spread, {{.373, 0}, {.371, 9}, {.39, 9}, {.3999, 9}, {.40, 0}, {.373, 0}}),
      ElementsAre(1, 0, 0, 0, 1, 1));
}

TEST(EntropyGate, AutoTooSmallWarnsOrStops) {
  const std::vector<GateInput> certain(5, {.0004, .009});
  EntropyGate open(auto_rules());
  observe_all(open, certain);
  EXPECT_THAT(calibration_text(auto_rules(), open.state()),
              AllOf(HasSubstr("0.0004"), HasSubstr("0.009"), HasSubstr("too small to gate on"),
                    HasSubstr("on_too_small")));
  EXPECT_THAT(observe_all(open, {{0, 0}, {1, 1}, {0, .001}}), ElementsAre(1, 1, 1));
  GateRules strict = auto_rules();
  strict.on_too_small = OnTooSmall::kStop;
  EntropyGate gate(strict);
  EXPECT_THAT(error_of([&] { observe_all(gate, certain); }),
              AllOf(HasSubstr("0.0004"), HasSubstr("0.009"), HasSubstr("too small to gate on")));
}

TEST(EntropyGate, AutoInterruptedAnywhereChangesNothing) {
  for (const double median : {.4, .0004}) {
    for (const double mean : {.3, .003}) {
      for (const bool previous_step : {false, true}) {
        GateRules rules = auto_rules();
        rules.previous_step = previous_step;
        std::vector<GateInput> values;
        for (const double factor : {1.0, 1.05, .95, 1.02, .98, .94, .92, .97, 1.0, .9, 1.1})
          values.emplace_back(median * factor, mean * factor);
        EntropyGate whole(rules);
        const std::vector<int> expected = observe_all(whole, values);
        for (std::size_t cut = 0; cut <= values.size(); ++cut) {
          EntropyGate first(rules), second(rules);
          const auto middle = values.begin() + std::ptrdiff_t(cut);
          std::vector<int> opened = observe_all(first, {values.begin(), middle});
          second.restore(first.state());
          for (const int g : observe_all(second, {middle, values.end()}))
            opened.push_back(g);
          EXPECT_EQ(opened, expected) << median << ", " << mean << ", cut at " << cut;
          EXPECT_EQ(second.state(), whole.state());
        }
      }
    }
  }
}

// A checkpoint from before statistic = auto: its gate knows only one statistic.
TEST(EntropyGate, AutoGoesOnWithWhatWasGatedBefore) {
  EntropyGate before(paper_rules());
  observe_all(before, kWarmup);
  EntropyGate gate(auto_rules());
  gate.restore(before.state());
  EXPECT_EQ(chosen_statistic(gate.state()), GateStatistic::kMedian);
  EXPECT_THAT(observe_all(gate, {{.373, 9}, {.371, 9}}), ElementsAre(1, 0));

  EntropyGate warming(paper_rules());  // it stored no means: the warm-up starts again
  observe_all(warming, {.4, .4, .4});
  gate.restore(warming.state());
  EXPECT_EQ(gate.state(), EntropyGate(auto_rules()).state());
  // Auto's choice is kept although the configuration changes.
  EntropyGate chosen(auto_rules()), median(paper_rules());
  observe_all(chosen, std::vector<GateInput>(5, {.0004, .4}));
  EXPECT_THAT(error_of([&] { median.restore(chosen.state()); }),
              HasSubstr("watched mean entropy, and now it should watch median entropy"));
  GateState torn = EntropyGate(auto_rules()).state();
  torn.steps = 2;
  torn.warmup = {.4, .4};
  EXPECT_THAT(error_of([&] { gate.restore(torn); }), HasSubstr("does not fit"));
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

GateInput input(const Method& method) {
  return gate_statistic(method.gate, gate_values(method, kTeacher, kStudent));
}

double statistic(const Method& method) {
  return input(method).statistic;
}

TEST(GateSignal, ReadsWhatTheMethodSays) {
  Method method;
  method.gate.signal = GateSignal::kEntropy;
  EXPECT_EQ(statistic(method), 1);  // over tokens, not over responses
  method.gate.statistic = GateStatistic::kMean;
  EXPECT_EQ(statistic(method), 1.5);
  method.gate.statistic = GateStatistic::kAuto;
  EXPECT_EQ(input(method).statistic, 1);
  EXPECT_EQ(input(method).mean, 1.5);
  method.gate.statistic = GateStatistic::kMean;
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
}  // namespace antisd::inline algo
