#include "config/run_config.h"

#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline config {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;

// The paper's table of hyperparameters.
TEST(RunConfig, DefaultsAreThePapers) {
  const RunConfig c;
  EXPECT_EQ(c.optim.lr, 1e-6);
  EXPECT_EQ(c.train.steps, 200);
  EXPECT_EQ(c.rollout.prompts_per_step, 32);
  EXPECT_EQ(c.rollout.group_size, 8);
  EXPECT_EQ(c.rollout.max_sequence_tokens, 32768);
  EXPECT_EQ(c.loss.clip_low, 0.2);
  EXPECT_EQ(c.loss.kl_coef, 0);
  EXPECT_EQ(c.rollout.temperature, 1.0);
  EXPECT_EQ(c.eval.temperature, 0.7);
  EXPECT_EQ(c.eval.top_p, 0.95);
  EXPECT_EQ(c.eval.n.at("hmmt_feb25"), 32);
  EXPECT_EQ(c.eval.n.at("minerva"), 4);
  EXPECT_EQ(c.method.lambda_max, 0.5);
  EXPECT_EQ(c.method.gate.warmup_steps, 5);
  EXPECT_EQ(c.method.gate.close, 0.93);
  EXPECT_EQ(c.method.gate.reopen, 1.0);
}

TEST(RunConfig, DefaultsAreValidAndSurviveAPrint) {
  RunConfig first, second;
  first.validate();
  first.options().assign("train.seed=7");
  second.options().load_toml_text(first.options().to_toml(true), "printed");
  second.validate();
  EXPECT_EQ(second.train.seed, 7);
  EXPECT_EQ(second.options().to_toml(false), first.options().to_toml(false));
}

TEST(RunConfig, EveryOptionHasHelp) {
  RunConfig c;
  for (const Option& option : c.options().options())
    EXPECT_FALSE(option.help().empty()) << option.key();
}

TEST(RunConfig, ContradictionsAreRefused) {
  const auto refused = [](std::initializer_list<const char*> lines) {
    RunConfig c;
    for (const char* line : lines)
      c.options().assign(line);
    return error_of([&] { c.validate(); });
  };
  EXPECT_THAT(refused({"optim.betas=[0.9]"}), HasSubstr("optim.betas"));
  EXPECT_THAT(refused({"rollout.top_p=0"}), HasSubstr("rollout.top_p"));
  EXPECT_THAT(refused({"data.max_prompt_tokens=40000"}), HasSubstr("no room for a response"));
  EXPECT_THAT(refused({"method.gate.reopen=0.5"}), HasSubstr("chatter"));
  EXPECT_THAT(refused({"method.gate.band_close=0.9"}), HasSubstr("band_reopen"));
  EXPECT_THAT(refused({"method.gate.warmup_steps=0"}), HasSubstr("calibrate"));
  EXPECT_THAT(refused({"method.lambda_rule=perplexity"}), HasSubstr("teacher_perplexity"));
  EXPECT_THAT(refused({"method.sdpo.alpha=1"}), HasSubstr("between 0 and 1"));
  EXPECT_THAT(refused({"reward.kind=command"}), HasSubstr("reward.command"));
  EXPECT_THAT(refused({"method.name=sdpo", "loss.rollout_correction=tis"}),
              HasSubstr("loss.rollout_correction has no meaning for sdpo"));
  EXPECT_THAT(refused({"reward.kind=python"}), HasSubstr("reward.function"));
}

TEST(RunConfig, TermsOfTheRewardAreReadAndRefusedByName) {
  RunConfig config;
  config.options().load_toml_text(R"(
[reward.terms]
style = "python  my style.py:score"
brief = "length tokens 100 200"
tests = "code"
[reward.weights]
brief = -0.5
tests = 2
)",
                                  "run.toml");
  config.validate();
  RunConfig again;  // as config.toml of a run has it
  again.options().load_toml_text(config.options().to_toml(false), "config.toml");
  for (const RunConfig* read : {&config, &again}) {
    const std::vector<RewardTerm> terms = reward_terms(read->reward);
    ASSERT_EQ(terms.size(), 3u);
    EXPECT_EQ(terms[0].name, "brief");
    EXPECT_EQ(terms[0].kind, "length");
    EXPECT_EQ(terms[0].argument, "tokens 100 200");
    EXPECT_EQ(terms[0].weight, -0.5);
    EXPECT_EQ(terms[1].argument, "my style.py:score");
    EXPECT_EQ(terms[1].weight, 1.0);
    EXPECT_EQ(terms[2].kind, "code");
    EXPECT_EQ(terms[2].weight, 2.0);
  }
  const auto refused = [](std::initializer_list<const char*> lines) {
    RunConfig c;
    for (const char* line : lines)
      c.options().assign(line);
    return error_of([&] { c.validate(); });
  };
  EXPECT_THAT(refused({"reward.terms.a=pyton x.py:f"}),
              AllOf(HasSubstr("reward.terms.a"), HasSubstr("'pyton'"), HasSubstr("python")));
  EXPECT_THAT(refused({"reward.terms.a=python"}), HasSubstr("needs an argument"));
  EXPECT_THAT(refused({"reward.terms.a=math 3"}), HasSubstr("does not take an argument"));
  EXPECT_THAT(refused({"reward.terms.grader=math"}), HasSubstr("name of a term"));
  EXPECT_THAT(refused({"reward.terms={\"a b\" = \"math\"}"}), HasSubstr("name of a term"));
  EXPECT_THAT(refused({"reward.terms.style=math", "reward.weights.stile=1"}),
              HasSubstr("did you mean 'style'?"));
  EXPECT_THAT(refused({"reward.terms.a=math", "reward.weights.a=much"}), HasSubstr("not a number"));
}

// 2048 unless the sequences are short. A value that was set stays, also when it is printed.
TEST(RunConfig, PromptsFollowTheSequencesUnlessTheirLengthIsSet) {
  const auto tokens = [](std::initializer_list<const char*> lines) {
    RunConfig c;
    for (const char* line : lines)
      c.options().assign(line);
    c.resolve();
    RunConfig again;
    again.options().load_toml_text(c.options().to_toml(false), "printed");
    again.resolve();
    EXPECT_EQ(again.options().to_toml(false), c.options().to_toml(false));
    return c.data.max_prompt_tokens;
  };
  EXPECT_EQ(tokens({}), 2048);
  EXPECT_EQ(tokens({"rollout.max_sequence_tokens=512"}), 256);
  EXPECT_EQ(tokens({"rollout.max_sequence_tokens=2"}), 1);
  EXPECT_EQ(tokens({"rollout.max_sequence_tokens=9000"}), 2048);
  EXPECT_EQ(tokens({"method.preset=released"}), 2048);
  EXPECT_EQ(tokens({"rollout.max_sequence_tokens=512", "data.max_prompt_tokens=500"}), 500);
  RunConfig set;
  set.options().load_toml_text("[data]\nmax_prompt_tokens = 600\n", "file");
  set.options().assign("rollout.max_sequence_tokens=512");
  EXPECT_THAT(error_of([&] { set.resolve(); }), HasSubstr("data.max_prompt_tokens = 600"));
}

TEST(RunConfig, ThePresetSetsWhatTheReleasedCodeDoes) {
  RunConfig c;
  c.options().assign("method.preset=released");
  c.resolve();
  EXPECT_EQ(c.method.gate.kind, "teacher_perplexity");
  EXPECT_EQ(c.method.gate.reopen, 1.07);
  EXPECT_EQ(c.method.gate.close, 0.93);
  EXPECT_EQ(c.method.signal.outlier_sigmas, 2);
  EXPECT_EQ(c.method.signal.max_response_tokens, 12000);
  EXPECT_EQ(c.context.fallback, "feedback");
  EXPECT_EQ(c.rollout.max_sequence_tokens, 16384);

  // The printed configuration resolves to itself.
  RunConfig again;
  again.options().load_toml_text(c.options().to_toml(false), "printed");
  again.resolve();
  EXPECT_EQ(again.options().to_toml(false), c.options().to_toml(false));
}

TEST(RunConfig, AKeyBesideThePresetOrLaterWins) {
  const auto reopen = [](const char* file, std::initializer_list<const char*> lines) {
    RunConfig c;
    c.options().load_toml_text(file, "file");
    for (const char* line : lines)
      c.options().assign(line);
    c.resolve();
    return c.method.gate.reopen;
  };
  const char* released = "[method]\npreset = 'released'\n";
  const char* both = "[method]\npreset = 'released'\ngate.reopen = 1.02\n";
  const char* key = "[method]\ngate.reopen = 1.02\n";
  EXPECT_EQ(reopen(released, {}), 1.07);
  EXPECT_EQ(reopen(both, {}), 1.02);
  EXPECT_EQ(reopen(key, {}), 1.02);
  EXPECT_EQ(reopen(released, {"method.gate.reopen=1"}), 1.0);
  EXPECT_EQ(reopen(key, {"method.preset=released"}), 1.07);
  EXPECT_EQ(reopen(key, {"method.gate.reopen=1.03", "method.preset=released"}), 1.03);
  EXPECT_EQ(reopen(both, {"method.preset=paper"}), 1.0);
}

TEST(RunConfig, NoPresetChangesALengthThatSomebodySet) {
  const auto length = [](const char* file, std::initializer_list<const char*> lines) {
    RunConfig c;
    c.options().load_toml_text(file, "file");
    for (const char* line : lines)
      c.options().assign(line);
    c.resolve();
    return c.rollout.max_sequence_tokens;
  };
  const char* own = "[rollout]\nmax_sequence_tokens = 4096\n";
  EXPECT_EQ(length("", {"method.preset=released"}), 16384);
  EXPECT_EQ(length("", {"method.preset=paper"}), 32768);
  EXPECT_EQ(length(own, {"method.preset=released"}), 4096);
  EXPECT_EQ(length(own, {"method.preset=paper"}), 4096);
  EXPECT_EQ(length("[method]\npreset = 'released'\n", {"rollout.max_sequence_tokens=4096"}), 4096);
}

std::string recipe(const std::filesystem::path& file) {
  RunConfig c;
  c.options().load_toml(file);
  c.resolve();
  const std::string printed = c.options().to_toml(false);
  RunConfig again;
  again.options().load_toml_text(printed, "printed");
  again.resolve();
  EXPECT_EQ(again.options().to_toml(false), printed) << file;
  return printed;
}

TEST(RunConfig, EveryRecipeResolves) {
  const std::filesystem::path recipes = std::filesystem::path(ANTISD_SOURCE_DIR) / "recipes";
  std::ifstream readme(recipes / "README.md");
  const std::string page((std::istreambuf_iterator<char>(readme)), {});
  std::map<std::string, std::string> run_of;  // record.dir -> recipe
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(recipes)) {
    const std::filesystem::path file = entry.path();
    if (file.extension() != ".toml") continue;
    const std::string printed = recipe(file);
    if (file.parent_path().filename() == "countdown") continue;  // not from the paper
    EXPECT_THAT(page, HasSubstr(file.filename().string()));
    const bool shared =
        file.stem() == "base" || file.stem() == "model" || file.filename() == "code.toml";
    if (shared) continue;
    ++count;
    // Each recipe has its own run directory, named after it.
    EXPECT_THAT(printed, HasSubstr(fmt::format("dir = \"runs/{}/{}\"",
                                               file.parent_path().filename().string(),
                                               file.stem().string())));
  }
  EXPECT_EQ(count, 49);
}

TEST(RunConfig, RecipesAreThePapersRows) {
  const auto load = [](const std::string& name, RunConfig& c) {
    c.options().load_toml(std::filesystem::path(ANTISD_SOURCE_DIR) / "recipes" / name);
    c.resolve();
  };
  RunConfig antisd, think, continual, code, released;
  load("qwen3-8b/antisd.toml", antisd);
  EXPECT_EQ(antisd.method.name, "antisd");
  EXPECT_EQ(antisd.model.path, "models/Qwen3-8B");
  EXPECT_EQ(antisd.data.chat_options, (ScalarMap{{"enable_thinking", false}}));
  EXPECT_EQ(antisd.train.steps, 200);
  EXPECT_EQ(antisd.eval.n.at("minerva"), 4);
  EXPECT_EQ(antisd.eval.max_sequence_tokens, 32768);
  load("olmo3-7b-think/sd.toml", think);
  EXPECT_EQ(think.method.name, "sd");
  EXPECT_EQ(think.eval.max_sequence_tokens, 65536);
  EXPECT_EQ(think.rollout.max_sequence_tokens, 32768);
  load("qwen3-4b-instruct-2507/continual.toml", continual);
  EXPECT_EQ(continual.train.steps, 50);
  EXPECT_THAT(continual.train.init_from, HasSubstr("qwen3-4b-instruct-2507/grpo/"));
  load("qwen3-8b/code-antisd.toml", code);
  EXPECT_EQ(code.reward.kind, "code");
  EXPECT_EQ(code.data.template_name, "code");
  EXPECT_EQ(code.eval.n.at("humanevalplus"), 10);
  EXPECT_EQ(code.eval.benches.size(), 2u);
  load("qwen3-8b/antisd-released.toml", released);
  EXPECT_EQ(released.method.gate.reopen, 1.07);  // the preset beats the file that it extends
  EXPECT_EQ(released.rollout.max_sequence_tokens, 16384);
}

TEST(RunConfig, TheDocumentationPageIsTheDescription) {
  std::ifstream file(std::filesystem::path(ANTISD_SOURCE_DIR) / "docs" / "options.md");
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_THAT(page.str(), HasSubstr(RunConfig().options().to_markdown()))
      << "docs/options.md is out of date: run `make docs`";
}

// Values of the papers that docs/methods.md names.
TEST(RunConfig, ABaselineIsItsKeys) {
  const auto resolved = [](const std::vector<std::string>& settings) {
    auto config = std::make_unique<RunConfig>();
    for (const std::string& setting : settings)
      config->options().assign(setting);
    config->resolve();
    return config;
  };
  const auto dapo = resolved({"method.preset=dapo", "rollout.max_sequence_tokens=20480"});
  EXPECT_EQ(dapo->method.name, "grpo");
  EXPECT_EQ(dapo->loss.clip_low, .2);
  EXPECT_EQ(dapo->loss.clip_high, .28);
  EXPECT_EQ(dapo->loss.aggregation, "token-mean");
  EXPECT_EQ(dapo->reward.overlong_tokens, 4096);
  EXPECT_GT(dapo->rollout.refill, 0);
  const auto dr_grpo = resolved({"method.preset=dr-grpo", "rollout.max_sequence_tokens=4096"});
  EXPECT_EQ(dr_grpo->advantage.scale, "none");
  EXPECT_EQ(dr_grpo->loss.aggregation, "seq-mean-token-sum-norm");
  EXPECT_EQ(dr_grpo->loss.norm_tokens, 4096);
  const auto gspo = resolved({"method.preset=gspo"});
  EXPECT_EQ(gspo->loss.ratio, "sequence");
  EXPECT_EQ(gspo->loss.clip_low, 3e-4);
  EXPECT_EQ(gspo->loss.clip_high, 4e-4);
  EXPECT_EQ(resolved({"method.preset=cispo"})->loss.policy, "cispo");
  EXPECT_EQ(resolved({"method.preset=rloo"})->advantage.baseline, "leave-one-out");
  // A key beside the preset wins; so AntiSD on top of a baseline is two settings.
  const auto both = resolved({"method.preset=gspo", "method.name=antisd", "loss.clip_high=0.1"});
  EXPECT_EQ(both->method.name, "antisd");
  EXPECT_EQ(both->loss.ratio, "sequence");
  EXPECT_EQ(both->loss.clip_high, .1);
}

TEST(RunConfig, SdpoRefusesWhatItsLossCannotFollow) {
  for (const char* setting :
       {"loss.aggregation=seq-mean-token-sum", "loss.ratio=sequence", "loss.policy=cispo"}) {
    RunConfig config;
    config.options().assign("method.name=sdpo");
    config.options().assign(setting);
    EXPECT_THAT(error_of([&] { config.resolve(); }), HasSubstr("sdpo")) << setting;
  }
}

TEST(RunConfig, AnOverlongBufferIsShorterThanASequence) {
  RunConfig config;
  config.options().assign("reward.overlong_tokens=32768");
  EXPECT_THAT(error_of([&] { config.resolve(); }), HasSubstr("reward.overlong_tokens"));
}

TEST(TeacherConfig, OpdShowsAnotherModelTheStudentsPrompt) {
  const auto control = [](const std::vector<std::string>& settings) {
    RunConfig config;
    for (const std::string& setting : settings)
      config.options().assign(setting);
    config.resolve();
    return config.context.control;
  };
  EXPECT_EQ(control({"method.name=opd", "method.teacher.path=other"}), "prompt-alone");
  EXPECT_EQ(control({"method.name=opd", "method.teacher.path=other", "context.control=none"}),
            "none");
  EXPECT_EQ(control({"method.name=opd", "method.teacher.path=other", "context.column=hint"}),
            "none");
  EXPECT_EQ(control({"method.name=sd", "method.teacher.path=other"}), "none");
  EXPECT_EQ(control({"method.name=opd"}), "none");
}

TEST(TeacherConfig, RefusesWhatHasNoMeaning) {
  const auto problem = [](const std::vector<std::string>& settings) -> std::string {
    RunConfig config;
    for (const std::string& setting : settings)
      config.options().assign(setting);
    try {
      config.resolve();
    } catch (const InputError& error) {
      return error.message();
    }
    return "";
  };
  for (const char* name : {"grpo", "antisd-no-teacher"})
    EXPECT_THAT(problem({fmt::format("method.name={}", name), "method.teacher.path=other"}),
                ::testing::HasSubstr("has no teacher"));
  EXPECT_THAT(
      problem({"method.name=sdpo", "method.teacher.path=other", "method.sdpo.teacher_ema=0.1"}),
      ::testing::HasSubstr("follow the student"));
  EXPECT_EQ(problem({"method.name=sdpo", "method.teacher.path=other"}), "");
  EXPECT_THAT(problem({"method.opd.alpha=1"}), ::testing::HasSubstr("makes the loss 0"));
  EXPECT_THAT(problem({"method.name=opd", "method.opd.divergence=jsd", "loss.ratio=sequence"}),
              ::testing::HasSubstr("no meaning for opd"));
  EXPECT_EQ(problem({"method.name=opd", "loss.ratio=sequence"}), "");
  EXPECT_THAT(problem({"context.column=hint", "context.control=wrong"}),
              ::testing::HasSubstr("does not show the column 'hint'"));
}

}  // namespace
}  // namespace antisd::inline config
