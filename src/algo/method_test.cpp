// The table of methods: names, and which setting each row changes.
#include "algo/method.h"

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline algo {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;

Method method_named(const std::string& name, std::initializer_list<const char*> keys = {}) {
  RunConfig config;
  config.options().assign("method.name=" + name);
  for (const char* key : keys)
    config.options().assign(key);
  config.resolve();
  return resolve_method(config.method, config.loss);
}

TEST(MethodTable, TheConfigurationKnowsTheSameNames) {
  std::string names;
  for (const MethodRow& row : method_table())
    names += (names.empty() ? "" : " | ") + std::string(row.name);
  EXPECT_EQ(RunConfig().options().find("method.name")->range_text(), names);
  MethodConfig unknown;
  unknown.name = "antisdd";
  EXPECT_THAT(error_of([&] { resolve_method(unknown, {}); }), HasSubstr("'antisd'"));
}

TEST(MethodTable, Baselines) {
  const Method grpo = method_named("grpo");
  EXPECT_EQ(grpo.sign, 0);
  EXPECT_FALSE(grpo.needs_teacher());
  EXPECT_FALSE(grpo.gates_on_student());

  const Method sd = method_named("sd");
  EXPECT_EQ(sd.sign, +1);
  EXPECT_TRUE(sd.group_advantage);
  EXPECT_EQ(sd.divergence, Divergence::kKl);
  EXPECT_EQ(sd.gate.signal, GateSignal::kNone);
  EXPECT_EQ(sd.gate.warmup_steps, 0);
  EXPECT_TRUE(sd.needs_teacher());

  EXPECT_FALSE(method_named("opd").group_advantage);
  EXPECT_EQ(method_named("opd").sign, +1);
  EXPECT_TRUE(method_named("sdpo").distils);
  EXPECT_TRUE(method_named("sdpo").needs_teacher());
}

TEST(MethodTable, SdIgnoresWhatAntiSdIsToldOfItsTerm) {
  const Method sd = method_named("sd", {"method.phi=jsd", "method.compose=multiplicative",
                                        "method.gate.kind=entropy", "method.signal.clamp_u=5"});
  EXPECT_EQ(sd.divergence, Divergence::kKl);
  EXPECT_EQ(sd.composition, Composition::kAdditive);
  EXPECT_EQ(sd.signal.clamp_u, 0);
}

TEST(MethodTable, AntiSdIsThePapers) {
  const Method antisd = method_named("antisd");
  EXPECT_EQ(antisd.sign, -1);
  EXPECT_EQ(antisd.divergence, Divergence::kJsd);
  EXPECT_EQ(antisd.composition, Composition::kAdditive);
  EXPECT_EQ(antisd.lambda_max, .5);
  EXPECT_EQ(antisd.gate.signal, GateSignal::kEntropy);
  EXPECT_EQ(antisd.gate.statistic, GateStatistic::kAuto);
  EXPECT_EQ(antisd.gate.min_warm, .01);
  EXPECT_EQ(antisd.gate.on_too_small, OnTooSmall::kOpen);
  EXPECT_EQ(antisd.gate.warmup_steps, 5);
  EXPECT_EQ(antisd.gate.close, .93);
  EXPECT_EQ(antisd.gate.band_close, 0);
  EXPECT_FALSE(antisd.gates_on_student());
}

TEST(MethodTable, AblationsTurnOneKnob) {
  EXPECT_EQ(method_named("antisd-reverse-kl").divergence, Divergence::kKl);
  EXPECT_EQ(method_named("antisd-no-gate").gate.signal, GateSignal::kNone);
  EXPECT_EQ(method_named("antisd-no-gate").gate.warmup_steps, 5);
  EXPECT_EQ(method_named("antisd-close-0.90").gate.close, .90);
  EXPECT_EQ(method_named("antisd-close-0.95").gate.close, .95);
  EXPECT_EQ(method_named("antisd-multiplicative").composition, Composition::kMultiplicative);
  EXPECT_TRUE(method_named("antisd-student-gate").gates_on_student());
  EXPECT_EQ(method_named("antisd-two-sided").gate.band_close, 1.07);

  const Method alone = method_named("antisd-no-teacher");
  EXPECT_FALSE(alone.needs_teacher());
  EXPECT_TRUE(alone.gates_on_student());

  // The same by keys.
  EXPECT_EQ(method_named("antisd", {"method.phi=kl"}).divergence, Divergence::kKl);
  EXPECT_EQ(method_named("antisd", {"method.gate.close=0.9"}).gate.close, .9);
  EXPECT_EQ(method_named("antisd", {"method.gate.kind=none"}).gate.signal, GateSignal::kNone);
  EXPECT_EQ(method_named("antisd", {"method.gate.statistic=median"}).gate.statistic,
            GateStatistic::kMedian);
  EXPECT_EQ(method_named("antisd", {"method.gate.statistic=mean"}).gate.statistic,
            GateStatistic::kMean);
  EXPECT_EQ(method_named("antisd", {"method.gate.on_too_small=stop"}).gate.on_too_small,
            OnTooSmall::kStop);
}

// The released code's limit of 12,000 in 16,384 tokens, in proportion.
TEST(MethodTable, ATermWithoutABoundOnTheLengthIsWarnedOf) {
  const auto warning = [](const std::string& name, std::initializer_list<const char*> settings) {
    return unbounded_term_text(method_named(name, settings), 240);
  };
  for (const char* name : {"antisd", "antisd-no-gate", "antisd-reverse-kl", "antisd-two-sided"})
    EXPECT_THAT(warning(name, {}), HasSubstr("method.signal.max_response_tokens=175")) << name;
  EXPECT_THAT(unbounded_term_text(method_named("antisd"), 16'384),
              HasSubstr("method.signal.max_response_tokens=12000"));
  // The released code's own limit, where no response can reach it.
  EXPECT_THAT(warning("antisd", {"method.preset=released"}),
              AllOf(HasSubstr("max_response_tokens = 12000"), HasSubstr("=175")));
  EXPECT_EQ(warning("antisd", {"method.signal.max_response_tokens=200"}), "");
  EXPECT_EQ(warning("antisd", {"method.lambda_max=0"}), "");
  for (const char* name : {"grpo", "sd", "opd", "sdpo"})  // [method.signal] is not for them
    EXPECT_EQ(warning(name, {}), "") << name;
}

TEST(MethodTable, ReleasedCode) {
  const Method antisd = method_named("antisd", {"method.preset=released"});
  EXPECT_EQ(antisd.gate.signal, GateSignal::kTeacherPerplexity);
  EXPECT_EQ(antisd.gate.close_floor, 1.01);
  EXPECT_EQ(antisd.gate.reopen, 1.07);
  EXPECT_TRUE(antisd.gate.previous_step);
  EXPECT_EQ(antisd.lambda_rule, LambdaRule::kPerplexity);
  EXPECT_TRUE(antisd.signal.standardise);
  EXPECT_EQ(method_named("sd", {"method.preset=released"}).divergence, Divergence::kJsd);
  EXPECT_EQ(method_named("opd", {"method.preset=released"}).divergence, Divergence::kKl);
}

TEST(MethodTable, TheTwoSidedGateTakesAnotherBand) {
  EXPECT_EQ(method_named("antisd-two-sided", {"method.gate.band_close=1.15"}).gate.band_close,
            1.15);
  EXPECT_EQ(method_named("antisd", {"method.gate.band_close=1.15"}).gate.band_close, 1.15);
  EXPECT_THAT(error_of([] { method_named("antisd-two-sided", {"method.gate.band_reopen=1.1"}); }),
              HasSubstr("band_reopen"));
}

TEST(MethodTable, PerplexitiesAreComparedWithPerplexitiesAlone) {
  EXPECT_THAT(error_of([] { method_named("antisd-student-gate", {"method.preset=released"}); }),
              HasSubstr("lambda_rule"));
}

TEST(MethodTable, AGateNeedsAWarmUp) {
  EXPECT_THAT(error_of([] {
                method_named("antisd-student-gate",
                             {"method.gate.kind=none", "method.gate.warmup_steps=0"});
              }),
              HasSubstr("warmup_steps"));
}

TEST(Method, SaysWhatItDoes) {
  const auto text = [](std::initializer_list<const char*> lines) {
    RunConfig config;
    for (const char* line : lines)
      config.options().assign(line);
    config.resolve();
    return method_text(resolve_method(config.method, config.loss));
  };
  EXPECT_EQ(text({"method.name=grpo"}), "grpo: A_t = A");
  EXPECT_EQ(text({}),
            "antisd: A_t = A - lambda phi(u); lambda = 0.5; the gate watches the median of the "
            "teacher's entropies, or their mean where the median is below 0.01 in the warm-up: 5 "
            "steps of warm-up at lambda = 0, closed below 0.93 x their median, open again at 1 x");
  EXPECT_EQ(text({"method.name=sd"}), "sd: A_t = A + lambda u; lambda = 0.5; no gate");
  EXPECT_THAT(text({"method.preset=released"}),
              AllOf(HasSubstr("0.2 ln(ppl / tau)"), HasSubstr("or 1.01"), HasSubstr("1.07 x"),
                    HasSubstr("the step before decides")));
  EXPECT_THAT(text({"method.name=antisd-two-sided"}), HasSubstr("also closed above 1.07 x"));
  EXPECT_THAT(text({"method.name=antisd-no-teacher"}), HasSubstr("the student's entropies"));
  EXPECT_THAT(text({"method.name=sdpo", "loss.kl_coef=0.1"}),
              AllOf(HasSubstr("100 likeliest"), HasSubstr("0.1 KL to the reference")));
}

}  // namespace
}  // namespace antisd::inline algo
