// `inspect` as a user runs it: compared with `score` and with a run's own record, and with bad
// input.

#include <cmath>

#include "cli/command_testing.h"
#include "trainer/testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Outcome;

// Puts a NaN into one weight of a small model.
void spoil_weights(const fs::path& directory) {
  CausalLm model = load_model(directory, at::kCPU, at::kFloat);
  model.parameters().at("layers.1.down").value.view(-1)[5] = NAN;
  save_model(model, directory, directory, at::kFloat);
}

class Inspect : public testing::CommandTest {
 protected:
  Inspect() {
    testing::make_small_model(folder_ / "model");
    testing::make_small_problems(folder_ / "problems.jsonl", 4);
    RunConfig config;
    for (const std::string& setting : testing::small_settings(folder_.path()))
      config.options().assign(setting);
    write("run.toml", config.options().to_toml(false));
  }

  Outcome inspect(const std::string& more, const std::string& input = "") const {
    return run("inspect model run.toml --threads 1 --device cpu " + more, input);
  }
  Json report(const std::string& more, const std::string& input = "") const {
    const Outcome outcome = inspect(more + " --json", input);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.status == 0 ? Json::parse(outcome.out) : Json();
  }
  std::string message(const std::string& more, const std::string& input = "") const {
    const Outcome outcome = inspect(more, input);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    return outcome.err;
  }

  // logp of `score` on these ids.
  std::vector<double> score(const Json& prompt_ids, const Json& response_ids) const {
    const Json row = {{"prompt_ids", prompt_ids}, {"response_ids", response_ids}};
    const Outcome outcome = run("score model --threads 1 --device cpu", row.dump() + "\n");
    return Json::parse(outcome.out)["logp"].get<std::vector<double>>();
  }

  const std::string row_ = R"({"id":"a","problem":"Numbers 1 2 target 3","answer":"win",
      "solution":"win 1 2","response":"1 win lose 5[EOS]","reward":1})";
  std::string one_line(std::string text) const {
    std::erase(text, '\n');
    return text + "\n";
  }
};

TEST_F(Inspect, UIsTMinusSOfScoreOnTheSameIds) {
  const Json response = report("-", one_line(row_))["responses"][0];
  EXPECT_EQ(response["id"], "a");
  EXPECT_EQ(response["source"], "dataset");
  EXPECT_EQ(response["tokens"].dump(), R"([" 1"," win"," lose"," 5"," [EOS]"])");
  EXPECT_EQ(response["special"].dump(), "[4]");
  EXPECT_NE(response["prompt_ids"], response["teacher_prompt_ids"]);
  EXPECT_THAT(response["teacher_prompt"].get<std::string>(), HasSubstr("win 1 2"));
  const std::vector<double> s = score(response["prompt_ids"], response["ids"]),
                            t = score(response["teacher_prompt_ids"], response["ids"]);
  ASSERT_EQ(s.size(), 5u);
  double largest = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const double u = response["u"][i].get<double>();
    EXPECT_NEAR(response["s"][i].get<double>(), s[i], 1e-6);
    EXPECT_NEAR(response["t"][i].get<double>(), t[i], 1e-6);
    EXPECT_NEAR(u, t[i] - s[i], 1e-6);
    const double phi = (std::log1p(std::exp(u)) - std::log(2.0)) / 2;
    EXPECT_NEAR(response["phi"][i].get<double>(), phi, 2e-6);
    EXPECT_NEAR(response["term"][i].get<double>(), -0.5 * phi, 2e-6);
    EXPECT_TRUE(response["advantage"][i].is_null());  // a response alone has no group
    largest = std::max(largest, std::abs(u));
  }
  EXPECT_GT(largest, 1e-3);  // otherwise this tests nothing
}

TEST_F(Inspect, EqualPromptsGiveUZero) {
  const Json response = report(
      "-", R"({"prompt_ids":[2,14,15],"teacher_prompt_ids":[2,14,15],"response_ids":[12,13,1]})"
           "\n")["responses"][0];
  ASSERT_EQ(response["u"].size(), 3u);
  for (const Json& u : response["u"])
    EXPECT_LE(std::abs(u.get<double>()), 1e-5);
}

TEST_F(Inspect, ThePageHoldsTheNumbersOfTheJson) {
  const Outcome outcome = inspect("problems.jsonl --samples 3 --json --html 'a page.html'");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string page = read_file(folder_ / "a page.html");
  const std::string opening = "const report = ";
  const std::size_t begin = page.find(opening) + opening.size();
  const Json embedded = Json::parse(page.substr(begin, page.find(";\n", begin) - begin));
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(embedded, report);
  EXPECT_EQ(report["summary"]["responses"], 12);
  EXPECT_EQ(report["summary"]["problems"], 4);
  EXPECT_EQ(report["responses"].size(), 4u);
  EXPECT_TRUE(report["responses"][0]["group_advantage"].is_number());
  EXPECT_EQ(inspect("problems.jsonl --samples 3 --json").out, outcome.out);  // the seed decides
  EXPECT_NE(inspect("problems.jsonl --samples 3 --json --seed 7").out, outcome.out);
}

TEST_F(Inspect, AGivenResponseWithSampledOnesAsItsGroup) {
  const std::string row = R"({"problem":"Numbers 1 2 target 3","answer":"win","response":"1 + 2"})"
                          "\n";
  const Json response = report("- --samples 3", row)["responses"][0];
  EXPECT_TRUE(response["group_advantage"].is_number());
  EXPECT_EQ(report("- --samples 3", row)["summary"]["responses"], 1);
}

// Reorders the words, so every id has a text and each is the wrong one.
TEST_F(Inspect, AnotherModelsTokenizerIsRefusedByTheFirstRowThatDiffers) {
  ASSERT_EQ(run("train run.toml method.gate.warmup_steps=1 train.steps=2 --threads 1 --device cpu "
                "--quiet")
                .status,
            0);
  EXPECT_EQ(inspect("run").status, 0);
  fs::copy(folder_ / "model", folder_ / "other", fs::copy_options::recursive);
  std::string tokenizer = read_file(folder_ / "other/tokenizer.json");
  for (const auto& [word, id] : {std::pair{"\"win\":", 12}, {"\"lose\":", 13}, {"\"1\":", 14}}) {
    const std::string entry = fmt::format("{}{}", word, id);
    ASSERT_NE(tokenizer.find(entry), std::string::npos);
    tokenizer.replace(tokenizer.find(entry), entry.size(),
                      fmt::format("{}{}", word, id == 14 ? 12 : id + 1));
  }
  write("other/tokenizer.json", tokenizer);
  const Outcome other = run("inspect other run --threads 1 --device cpu");
  EXPECT_EQ(other.status, 2);
  EXPECT_EQ(other.out, "");
  EXPECT_THAT(other.err, AllOf(HasSubstr("run/rollouts/step-000001.jsonl:"),
                               HasSubstr("the model's tokenizer reads response_ids as"),
                               HasSubstr("the model that the run trained")));
}

TEST_F(Inspect, WeightsThatAreNoNumbersAreAnError) {
  spoil_weights(folder_ / "model");
  const Outcome given = inspect("-", one_line(row_));
  EXPECT_EQ(given.status, 1) << given.err;
  EXPECT_THAT(given.err, AllOf(HasSubstr("problem 'a', sample 0, under the student's prompt"),
                               HasSubstr("model.layers.1.mlp.down_proj.weight holds NaN")));
  EXPECT_EQ(inspect("problems.jsonl --samples 2").status, 1);
  EXPECT_EQ(given.out, "");
  // The same for the other commands that run a model.
  const Outcome scored = run("score model --threads 1 --device cpu",
                             R"({"id":"a","prompt_ids":[1,2],"response_ids":[3]})");
  EXPECT_EQ(scored.status, 1);
  EXPECT_EQ(scored.out, "");
  EXPECT_THAT(scored.err, AllOf(HasSubstr("the row with id \"a\""),
                                HasSubstr("model.layers.1.mlp.down_proj.weight")));
  EXPECT_EQ(run("generate model --threads 1 --device cpu --prompt 'Numbers 1 |'").status, 1);
  EXPECT_EQ(run("eval model run.toml eval.benches=problems.jsonl reward.kind=countdown "
                "eval.max_sequence_tokens=20 --threads 1 --device cpu")
                .status,
            1);
}

TEST_F(Inspect, RolloutsOfARunNeedNoWeights) {
  ASSERT_EQ(run("train run.toml method.gate.warmup_steps=1 train.steps=3 --threads 1 --device cpu "
                "--quiet")
                .status,
            0);
  const std::string rows = "run/rollouts/step-000003.jsonl";
  Json metrics;
  JsonlReader of_run(folder_ / "run/metrics.jsonl");
  while (of_run.next(metrics)) {
  }
  std::int64_t tokens = 0;
  double sum = 0;
  JsonlReader reader(folder_ / rows);
  for (Json row; reader.next(row);) {
    for (std::size_t i = 0; i < row["student_logp"].size(); ++i) {
      ++tokens;
      sum += row["teacher_logp"][i].get<double>() - row["student_logp"][i].get<double>();
    }
  }
  const Json rescored = report(rows + " --rescore");
  fs::remove(folder_ / "model" / "model.safetensors");
  const Json summary = report(rows)["summary"];
  EXPECT_EQ(summary["tokens"], tokens);
  EXPECT_NEAR(summary["u"]["mean"].get<double>(), sum / static_cast<double>(tokens), 1e-6);
  EXPECT_NEAR(summary["u"]["mean"].get<double>(), metrics["antisd/u/mean"].get<double>(), 1e-5);
  EXPECT_NEAR(summary["u"]["negative"].get<double>(), metrics["antisd/u/frac_neg"].get<double>(),
              1e-5);
  if (metrics["antisd/term_ratio"].is_number()) {
    EXPECT_NEAR(summary["term"]["ratio"].get<double>(), metrics["antisd/term_ratio"].get<double>(),
                1e-5);
  }
  // The model before its three updates gives other scores to the same tokens.
  EXPECT_EQ(rescored["summary"]["tokens"], tokens);
  EXPECT_NE(rescored["summary"]["u"]["mean"], summary["u"]["mean"]);
  // A run directory stands for all of its rollouts and its own configuration.
  const Outcome all = run("inspect model run --json");
  ASSERT_EQ(all.status, 0) << all.err;
  EXPECT_EQ(Json::parse(all.out)["summary"]["responses"], 36);
}

TEST_F(Inspect, TextForTerminals) {
  const Outcome plain = inspect("-", one_line(row_));
  EXPECT_THAT(plain.out, AllOf(HasSubstr("lose"), HasSubstr("H_T"), Not(HasSubstr("\033"))));
  EXPECT_THAT(inspect("- --color", one_line(row_)).out, Not(HasSubstr("H_T")));
  const Outcome many = inspect("problems.jsonl --samples 2");
  EXPECT_THAT(many.out, AllOf(HasSubstr("8 responses"), HasSubstr("by kind")));

  const Outcome words = run("inspect --print-words");
  EXPECT_EQ(words.status, 0);
  EXPECT_THAT(words.out, HasSubstr("deliberation:"));
  write("words.txt", "luck: WIN lose\n");
  const Json mine = report("- --words words.txt", one_line(row_));
  EXPECT_EQ(mine["kinds"].dump(), R"(["luck","other"])");
  EXPECT_EQ(mine["responses"][0]["kind"].dump(), "[1,0,0,1,1]");
  EXPECT_EQ(run("inspect model run.toml --problem 'Numbers 1 target 1' --answer win --response "
                "'win' --device cpu")
                .status,
            0);
}

TEST_F(Inspect, MistakesAreOneClearMessage) {
  EXPECT_THAT(message("-", "{\"problem\":1}\n"), HasSubstr("standard input:1"));
  EXPECT_THAT(message("-", "{\"answer\":\"x\"}\n"), HasSubstr("standard input:1"));
  EXPECT_THAT(message("-", "not json\n"), HasSubstr("standard input:1"));
  EXPECT_THAT(message("-", ""), HasSubstr("there is nothing to inspect"));
  EXPECT_THAT(message("missing.jsonl"), HasSubstr("missing.jsonl"));
  EXPECT_THAT(message("- method.name=antisdd", one_line(row_)), HasSubstr("method.name"));
  EXPECT_THAT(message("- reward.kind=math data.template=math", "{\"problem\":\"x\"}\n"),
              HasSubstr("no answer"));
  std::string words = "1";
  for (int i = 0; i < 120; ++i)
    words += " win";
  Json longer = Json::parse(one_line(row_));
  longer["response"] = words;
  EXPECT_THAT(message("-", longer.dump() + "\n"),
              AllOf(HasSubstr("standard input:1"), HasSubstr("128 positions")));
  EXPECT_THAT(message("- --only right", R"({"problem":"Numbers 1 target 1","response":"win",)"
                                        R"("reward":0})"
                                        "\n"),
              HasSubstr("none of the 1 responses is right"));
  EXPECT_THAT(message("- --words missing.txt", one_line(row_)), HasSubstr("missing.txt"));
  EXPECT_THAT(message("--answer 3"), HasSubstr("--problem"));
  EXPECT_THAT(message("-", R"({"response_ids":[1],"student_logp":[0],"teacher_logp":null})"
                           "\n"),
              HasSubstr("none of the 1 rows has a teacher"));
  EXPECT_THAT(message("-", R"({"response_ids":[1],"student_logp":[0,1],"teacher_logp":[0]})"
                           "\n"),
              HasSubstr("'student_logp' has 2 numbers for 1 tokens"));
  EXPECT_EQ(run("inspect").status, 2);

  const Outcome kept =
      inspect("- --keep-going --json", "nonsense\n" + longer.dump() + "\n" + one_line(row_));
  ASSERT_EQ(kept.status, 0) << kept.err;
  EXPECT_EQ(Json::parse(kept.out)["summary"]["left_out"]["bad_rows"], 2);
  EXPECT_EQ(Json::parse(kept.out)["summary"]["responses"], 1);
  EXPECT_THAT(kept.err, HasSubstr("standard input:2: the teacher's prompt and response"));
}

}  // namespace
}  // namespace antisd::inline cli
