// The commands that need no weights: tokenizing, templates, configuration, data, grading, help.
#include <regex>

#include "cli/command_testing.h"

namespace antisd::inline cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Outcome;
using ::testing::StartsWith;

class Cli : public testing::CommandTest {
 protected:
  // A small model directory: words separated by spaces, and a one-line template.
  std::string make_model() {
    const std::filesystem::path model = folder_ / "model";
    std::filesystem::create_directories(model);
    write_file_atomically(model / "tokenizer.json",
                          R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[
      {"id":4,"content":"<end>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
      "normalizer":null,"pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":null,"decoder":null,
      "model":{"type":"WordLevel","vocab":{"<unk>":0,"one":1,"two":2,"three":3,"<end>":4},"unk_token":"<unk>"}})");
    write_file_atomically(model / "tokenizer_config.json",
                          R"({"eos_token":"<end>","unk_token":"<unk>"})");
    write_file_atomically(
        model / "chat_template.jinja",
        "{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}\n{% endfor %}"
        "{% if tools is none %}no tools {% endif %}{{ style | default('plain') }}"
        "{% if add_generation_prompt %} >{% endif %}");
    return model.string();
  }
};

TEST_F(Cli, TokenizesAndBack) {
  const std::string model = make_model();
  const Outcome there =
      run("tokenize " + model, "{\"id\":\"a\",\"text\":\"one three<end>\"}\n{\"text\":\"\"}\n");
  EXPECT_EQ(there.status, 0) << there.err;
  EXPECT_EQ(there.out, "{\"id\":\"a\",\"ids\":[1,3,4]}\n{\"ids\":[]}\n");
  const std::string rows = write("rows.jsonl", "{\"ids\":[1,3,4],\"id\":7}\n");
  EXPECT_EQ(run("detokenize " + model + " " + rows).out,
            "{\"id\":7,\"text\":\"one three <end>\"}\n");
  EXPECT_EQ(run("detokenize --skip-special-tokens " + model + " " + rows).out,
            "{\"id\":7,\"text\":\"one three\"}\n");
}

TEST_F(Cli, ABadRowStopsAfterTheRowsBeforeIt) {
  const std::string model = make_model();
  const std::string rows =
      write("rows.jsonl", "{\"text\":\"one\"}\n\n{\"txt\":\"two\"}\n{\"text\":\"three\"}\n");
  const Outcome stopped = run("tokenize " + model + " " + rows);
  EXPECT_EQ(stopped.status, 2);
  EXPECT_EQ(stopped.out, "{\"ids\":[1]}\n");
  EXPECT_EQ(stopped.err, "antisd: " + rows + ":3: the row has no 'text'; it has 'txt'\n");

  const Outcome went_on =
      run("tokenize --keep-going " + model,
          "{\"text\":\"one\"}\nnot json\n{\"id\":5,\"text\":3}\n{\"text\":\"two\"}\n");
  EXPECT_EQ(went_on.status, 0);
  EXPECT_THAT(went_on.out,
              StartsWith("{\"ids\":[1]}\n{\"error\":\"standard input:2: not valid JSON"));
  EXPECT_THAT(
      went_on.out,
      HasSubstr("{\"id\":5,\"error\":\"'text' is number; give a string\"}\n{\"ids\":[2]}\n"));
}

TEST_F(Cli, RendersWithTheModelsTemplateAndVariables) {
  const std::string model = make_model();
  const std::string row = R"({"id":1,"messages":[{"role":"user","content":"hi"}],"style":"bold"})";
  const Outcome rendered = run("render " + model, row + "\n");
  EXPECT_EQ(rendered.status, 0) << rendered.err;
  EXPECT_EQ(rendered.out, "{\"id\":1,\"text\":\"[user] hi<end>\\nno tools bold >\"}\n");

  const std::string other = write("other.jinja", "{{ messages | length }}{{ eos_token }}");
  const std::string rows = write("rows.jsonl", row);
  EXPECT_EQ(run("render --template " + other + " " + rows).out, "{\"id\":1,\"text\":\"1\"}\n");
  EXPECT_EQ(run("render " + model + " " + rows + " --template " + other).out,
            "{\"id\":1,\"text\":\"1<end>\"}\n");
  // Reasoning under any of its key names, as in transformers.
  const std::string thinking =
      write("thinking.jinja",
            "{% for m in messages %}{{ m.reasoning_content }}/{{ m.thinking }} {% endfor %}");
  EXPECT_EQ(
      run("render --template " + thinking,
          R"({"messages":[{"role":"a","reasoning":"x"},{"role":"a","thinking":"y"},{"role":"a","reasoning_content":"z","thinking":null}]})")
          .out,
      "{\"text\":\"x/x y/y z/None \"}\n");
  EXPECT_EQ(run("render").status, 2);
  EXPECT_THAT(run("render " + model, "{\"messages\":3}").err, HasSubstr("'messages' is number"));
}

TEST_F(Cli, PrintsAndResolvesTheConfiguration) {
  const Outcome defaults = run("config --defaults");
  EXPECT_EQ(defaults.status, 0);
  EXPECT_THAT(defaults.out, AllOf(HasSubstr("[rollout]"), HasSubstr("group_size = 8"),
                                  HasSubstr("[method.gate]")));
  const std::string file = write("run.toml", "[train]\nsteps = 7\n");
  EXPECT_THAT(run("config " + file + " train.seed=3").out,
              AllOf(HasSubstr("steps = 7"), HasSubstr("seed = 3")));
  // The printed configuration resolves to itself.
  const std::string printed = write("printed.toml", run("config " + file).out);
  EXPECT_EQ(run("config " + printed).out, run("config " + file).out);

  const Outcome unknown = run("config " + file + " train.step=3");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'train.steps'?"));
  EXPECT_THAT(unknown.out, IsEmpty());
}

TEST_F(Cli, ShowsChecksAndConvertsData) {
  const std::string rows = write("rows.jsonl",
                                 "{\"id\":\"a\",\"problem\":\"1 + 1?\",\"answer\":2}\n"
                                 "{\"id\":\"b\",\"problem\":\"1  + 1?\",\"answer\":\"\"}\n");
  EXPECT_THAT(run("data show " + rows + " --limit 1").out,
              AllOf(HasSubstr("\"problem\":\"1 + 1?\""), HasSubstr("\"answer\":\"2\""),
                    Not(HasSubstr("\"b\""))));
  const Json report = Json::parse(run("data check --json " + rows).out);
  EXPECT_EQ(report["rows"], 2);
  const std::string parquet = path("rows.parquet");
  EXPECT_EQ(
      run("data convert " + write("plain.jsonl", "{\"a\":1}\n{\"a\":2}\n") + " " + parquet).status,
      0);
  EXPECT_EQ(run("data convert " + parquet).out, "{\"a\":1}\n{\"a\":2}\n");
  const Outcome again = run("data convert " + rows + " " + parquet);
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("exists already"));
  EXPECT_EQ(run("data show no/such.jsonl").status, 2);
}

TEST_F(Cli, GradesAnswersProgramsAndSearches) {
  const Outcome math = run("grade math",
                           "{\"id\":1,\"answer\":0.5,\"response\":\"so \\\\boxed{\\\\frac12}\"}\n"
                           "{\"answer\":\"7\",\"response\":\"no idea\"}\n");
  EXPECT_EQ(math.status, 0) << math.err;
  EXPECT_THAT(math.out, StartsWith("{\"id\":1,\"correct\":true,\"extracted\":\"\\\\frac12\""));
  EXPECT_THAT(math.out, HasSubstr("{\"correct\":false,\"extracted\":\"\""));
  EXPECT_THAT(run("grade math --raw", R"({"answer":"2\\sqrt{2}","response":"$\\sqrt 8$"})").out,
              HasSubstr("\"correct\":true"));

  const Json program = {
      {"response", "```python\ndef f(x): return x * x\n```"},
      {"tests", {{"kind", "asserts"}, {"code", "assert f(2) == 4\nassert f(3) == 8"}}}};
  const Outcome code = run("grade code", to_json_line(program));
  ASSERT_EQ(code.status, 0) << code.err;
  const Json verdict = Json::parse(code.out);
  EXPECT_EQ(verdict["correct"], false);
  EXPECT_EQ(verdict["passed"], 1);
  EXPECT_EQ(verdict["total"], 2);

  EXPECT_THAT(
      run("grade countdown",
          R"({"problem":"Numbers 2 3 4 target 20","response":"Let 2 + 3 = 5 ; 5 * 4 = 20 holds So boxed 20"})")
          .out,
      HasSubstr("\"correct\":true"));
  // Several rows are graded at a time and come out in order; a bad row stops the rest.
  std::string rows;
  for (int i = 0; i < 200; ++i)
    rows += fmt::format("{{\"id\":{},\"answer\":{},\"response\":\"\\\\boxed{{100}}\"}}\n", i, i);
  const Outcome many = run("grade math --threads 4", rows + "{\"answer\":1}\n" + rows);
  EXPECT_EQ(many.status, 2);
  EXPECT_THAT(many.err, HasSubstr("standard input:201: the row has no 'response'"));
  int number = 0;
  for (const Json& row : testing::parse_rows(many.out)) {
    EXPECT_EQ(row["id"], number);
    EXPECT_EQ(row["correct"], number == 100);
    ++number;
  }
  EXPECT_EQ(number, 200);
}

TEST_F(Cli, GradesByAFunctionAndByAProgram) {
  const std::string functions = write("own.py", R"py(
def score(completions, answer, level, **kwargs):
    print("grading")
    return [None if c == "?" else float(c == a) * l for c, a, l in zip(completions, answer, level)]

def compute_score(data_source, solution_str, ground_truth, extra_info):
    return {"score": len(solution_str), "reason": f"{data_source} {ground_truth} {extra_info}"}
)py");
  const std::string rows = write("rows.jsonl",
                                 R"({"id":"a","problem":"2+2","answer":"4","level":3,"response":"4"}
{"problem":"2+2","answer":"4","level":3,"response":"5"}
{"problem":"2+2","answer":"4","level":3,"response":"?"}
)");
  const Outcome trl = run("grade python " + functions + ":score " + rows + " --threads 2");
  EXPECT_EQ(trl.status, 0) << trl.err;
  EXPECT_EQ(trl.out,
            "{\"id\":\"a\",\"reward\":3.0,\"correct\":true,\"reason\":\"\"}\n"
            "{\"reward\":0.0,\"correct\":false,\"reason\":\"\"}\n"
            "{\"reward\":null,\"correct\":null,\"reason\":\"reward.function gave no reward\"}\n");
  const Outcome verl = run("grade python --correct-at 0.5 " + functions + ":compute_score " + rows);
  EXPECT_EQ(verl.status, 0) << verl.err;
  EXPECT_THAT(verl.out, StartsWith("{\"id\":\"a\",\"reward\":1.0,\"correct\":true,\"reason\":"
                                   "\"rows 4 {'id': 'a', 'problem': '2+2', "));
  const std::string program = write("own_program.py", R"py(
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print(json.dumps({"reward": row["level"] - 3.5, "reason": row["response"]}), flush=True)
)py");
  const Outcome command = run("grade command 'python3 " + program + "' --correct-at=-0.5 " + rows);
  EXPECT_EQ(command.status, 0) << command.err;
  EXPECT_THAT(command.out, StartsWith("{\"id\":\"a\",\"reward\":-0.5,\"correct\":true,\"reason\":"
                                      "\"4\"}\n"));
  const Outcome missing = run("grade python " + functions + ":scor " + rows);
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err, HasSubstr("no function 'scor'"));
  const Outcome bad = run("grade python " + functions + ":score", "{\"answer\":1}\n");
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.err, HasSubstr("standard input:1: the row has no 'response'"));
}

TEST_F(Cli, SaysWhatItIs) {
  EXPECT_THAT(run("version").out, AllOf(StartsWith("antisd "), HasSubstr("revision: ")));
  const Outcome doctor = run("doctor");
  EXPECT_EQ(doctor.status, 0);
  EXPECT_THAT(doctor.out, AllOf(HasSubstr("cpu "), HasSubstr("sandbox "), HasSubstr("ranks "),
                                HasSubstr("network ")));
}

// CMake's version is the one that the program prints and that the newest entry of the change log
// has.
TEST_F(Cli, HasOneVersion) {
  const auto first_match = [](const char* file, const std::string& pattern) {
    const std::string text = read_file(std::filesystem::path(ANTISD_SOURCE_DIR) / file);
    std::smatch match;
    return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
  };
  const std::string version = first_match("CMakeLists.txt", R"(project\(antisd VERSION (\S+))");
  EXPECT_TRUE(std::regex_match(version, std::regex(R"(\d+\.\d+\.\d+)"))) << version;
  EXPECT_EQ(first_match("CHANGELOG.md", R"(\n## (\S+))"), version);
  EXPECT_EQ(run("--version").out, "antisd " + version + "\n");
  EXPECT_EQ(run("-v").out, "antisd " + version + "\n");
  EXPECT_THAT(run("version").out, StartsWith("antisd " + version + "\n"));
}

// The program alone, without the library that holds what needs torch.
TEST_F(Cli, WorksWithoutItsTensorHalf) {
  std::filesystem::copy_file(std::filesystem::path(ANTISD_BINARY_DIR) / "antisd",
                             folder_ / "antisd");
  EXPECT_EQ(shell("./antisd config --defaults >out && ./antisd --help >out"), 0);
  EXPECT_THAT(read_file(folder_ / "out"), AllOf(HasSubstr("train"), HasSubstr("tokenize")));
  EXPECT_EQ(shell("./antisd doctor >out"), 0);
  EXPECT_THAT(read_file(folder_ / "out"), HasSubstr("torch      --"));
  EXPECT_EQ(shell("./antisd train x.toml 2>err"), 1);
  if (!std::filesystem::exists(ANTISD_BINARY_DIR "/libantisd_tensor.so")) {
    EXPECT_THAT(read_file(folder_ / "err"), HasSubstr("built without torch"));
    return;
  }
  EXPECT_THAT(read_file(folder_ / "err"),
              AllOf(HasSubstr("libantisd_tensor.so is not beside the program"),
                    HasSubstr("install antisd again")));
  write("libantisd_tensor.so", "no library");
  EXPECT_EQ(shell("./antisd train --help 2>err"), 1);
  EXPECT_THAT(read_file(folder_ / "err"),
              AllOf(HasSubstr("libantisd_tensor.so: the library cannot be loaded"),
                    HasSubstr("pip install torch==")));
}

TEST_F(Cli, HelpAndBadUsage) {
  EXPECT_THAT(run("--help").out, HasSubstr("tokenize"));
  EXPECT_EQ(run("help").out, run("--help").out);
  EXPECT_EQ(run("help tokenize").out, run("tokenize --help").out);
  const Outcome no_such_help = run("help tokenise");
  EXPECT_EQ(no_such_help.status, 2);
  EXPECT_THAT(no_such_help.err, HasSubstr("did you mean 'tokenize'?"));
  EXPECT_EQ(run("-- version").status, 2);
  EXPECT_THAT(run("tokenize --help").out,
              AllOf(HasSubstr("--add-special-tokens"), HasSubstr("--keep-going")));
  const Outcome unknown = run("tokenise");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.err, "antisd: unknown command 'tokenise'; did you mean 'tokenize'?\n");
  EXPECT_EQ(run("").status, 2);
  EXPECT_EQ(run("tokenize").status, 2);
  EXPECT_EQ(run("tokenize --no-such-flag x").status, 2);
  EXPECT_EQ(run("tokenize no/such/model").status, 2);
}

TEST_F(Cli, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "needs /dev/full";
  EXPECT_EQ(shell("antisd config --defaults >/dev/full 2>/dev/null"), 1);
}

}  // namespace
}  // namespace antisd::inline cli
