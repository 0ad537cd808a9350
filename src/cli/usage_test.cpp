// What the program says about usage that it does not understand, its help, and --quiet.
#include "cli/usage.h"

#include <sstream>

#include "cli/command.h"
#include "cli/command_testing.h"

namespace antisd::inline cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Outcome;

class Usage : public testing::CommandTest {};

TEST_F(Usage, AnUnknownKindNamesTheNearestAndAll) {
  const Outcome maths = run("grade maths");
  EXPECT_EQ(maths.status, 2);
  EXPECT_EQ(
      maths.err,
      "antisd: `antisd grade` does not know 'maths'; did you mean 'math'? it knows math, code, "
      "countdown, python, command\n");
  EXPECT_EQ(run("data xyzzy rows.jsonl").err,
            "antisd: `antisd data` does not know 'xyzzy'; it knows show, check, convert\n");
  EXPECT_EQ(run("data").status, 2);
  EXPECT_THAT(run("data").err, HasSubstr("it knows show, check, convert"));
  EXPECT_THAT(run("grade --quiet cod").err, HasSubstr("did you mean 'code'?"));
}

TEST_F(Usage, AnUnknownFlagNamesTheNearest) {
  const Outcome flag = run("grade math --thread 3");
  EXPECT_EQ(flag.status, 2);
  EXPECT_THAT(flag.err, AllOf(HasSubstr("--thread"), HasSubstr("did you mean '--threads'?"),
                              HasSubstr("see `antisd grade math --help`")));
  EXPECT_THAT(run("config --default=1").err, HasSubstr("did you mean '--defaults'?"));
  EXPECT_THAT(run("config --wibble-wobble").err, HasSubstr("see `antisd config --help`"));
}

TEST_F(Usage, EveryCommandTakesQuietAndHelpAll) {
  for (const Command& command : all_commands()) {
    if (command.add == kInTensorHalf) continue;  // a library that is not in this test
    CLI::App app;
    (void)command.add(app);
    add_common_flags(app);
    std::vector<const CLI::App*> all = {&app};
    for (const CLI::App* kind : app.get_subcommands({}))
      all.push_back(kind);
    for (const CLI::App* one : all) {
      EXPECT_NE(one->get_option_no_throw("--quiet"), nullptr) << command.name;
      EXPECT_NE(one->get_option_no_throw("--help-all"), nullptr) << command.name;
    }
  }
}

// Every key of the printed configuration is in the long help; the short one fits a screen.
TEST_F(Usage, TheShortHelpHasTheCommonKeysAndTheLongOneAll) {
  const std::string shorter = run("config --help").out, longer = run("config --help-all").out;
  EXPECT_THAT(shorter, HasSubstr("`antisd config --help-all` lists all"));
  std::istringstream toml(run("config").out);
  std::string section;
  int keys = 0;
  for (std::string line; std::getline(toml, line);) {
    if (line.starts_with("[")) {
      section = line.substr(1, line.find(']') - 1);
    } else if (const std::size_t equals = line.find(" = "); equals != std::string::npos) {
      EXPECT_THAT(longer, HasSubstr(fmt::format("  {}.{}  ", section, line.substr(0, equals))));
      ++keys;
    }
  }
  EXPECT_GT(keys, 50);
}

// Ordinary input gives no line on standard error; with --quiet what is only said is not said.
TEST_F(Usage, QuietLeavesStandardErrorEmpty) {
  const std::string rows = write("rows.jsonl",
                                 "{\"problem\":\"1 + 1?\",\"answer\":\"2\","
                                 "\"response\":\"\\\\boxed{2}\"}\n");
  write("countdown.jsonl", "{\"problem\":{\"numbers\":[1,2],\"target\":3},\"response\":\"1+2\"}\n");
  write("code.jsonl",
        "{\"response\":\"```python\\nx = 1\\n```\",\"tests\":{\"kind\":\"asserts\",\"code\":"
        "\"assert x == 1\"}}\n");
  for (const char* line :
       {"version", "doctor", "config", "config --defaults", "grade math rows.jsonl",
        "grade countdown countdown.jsonl", "grade code code.jsonl", "data show rows.jsonl",
        "data check rows.jsonl"}) {
    const Outcome plain = run(line), quiet = run(std::string(line) + " --quiet");
    EXPECT_EQ(plain.status, 0) << line << plain.err;
    EXPECT_THAT(plain.err, IsEmpty()) << line;
    EXPECT_EQ(quiet.status, 0) << line << quiet.err;
    EXPECT_THAT(quiet.err, IsEmpty()) << line;
    EXPECT_THAT(quiet.out, ::testing::Not(IsEmpty())) << line;
  }
  EXPECT_EQ(run("data convert rows.jsonl a.csv").err, "a.csv: 1 of 1 rows\n");
  EXPECT_THAT(run("data convert rows.jsonl b.csv --quiet").err, IsEmpty());
  const Outcome bad = run("grade math --quiet", "{}\n");
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.err, HasSubstr("the row has no '"));
}

TEST_F(Usage, DoctorSaysWhetherGradedCodeHasNumpy) {
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "needs /usr/bin/python3";
  const bool there = shell("/usr/bin/python3 -I -c 'import numpy' 2>err") == 0;
  std::istringstream lines(run("doctor").out);
  std::string found;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("numpy ")) found = line;
  EXPECT_THAT(found, HasSubstr(there ? " ok " : " -- "));
  EXPECT_THAT(found, HasSubstr(there ? "can import it" : "; apt-get install python3-numpy"));
}

TEST_F(Usage, RowsMayBeCsvAndPacked) {
  write("rows.csv", "id,answer,response\n1,2,\"so \\boxed{2},\nthat is it\"\n2,3,\\boxed{4}\n");
  const std::string expected = run("grade math rows.csv").out;
  const std::vector<Json> verdicts = testing::parse_rows(expected);
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0]["id"], "1");
  EXPECT_EQ(verdicts[0]["correct"], true);
  EXPECT_EQ(verdicts[1]["correct"], false);
  ASSERT_EQ(
      shell("antisd data convert rows.csv rows.jsonl.gz --quiet && gunzip -k rows.jsonl.gz && "
            "gzip rows.csv"),
      0);
  EXPECT_EQ(run("grade math rows.csv.gz").out, expected);
  EXPECT_EQ(run("grade math rows.jsonl").out, expected);
  EXPECT_EQ(run("grade math", read_file(folder_ / "rows.jsonl.gz")).out, expected);
  write("code.csv",
        "response,tests\n\"```python\nx = 1\n```\",\"{\"\"kind\"\":\"\"asserts\"\",\"\"code\"\":"
        "\"\"assert x == 1\"\"}\"\n");
  EXPECT_THAT(run("grade code code.csv").out, HasSubstr("\"correct\":true"));
  // The way back gives the same file.
  ASSERT_EQ(shell("antisd data convert rows.jsonl.gz again.csv --quiet && gunzip rows.csv.gz && "
                  "cmp rows.csv again.csv"),
            0);
}

TEST_F(Usage, DamagedRowsEndTheCommandAlsoIfItKeepsGoing) {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += fmt::format("{{\"answer\":\"{}\",\"response\":\"\\\\boxed{{{}}}\"}}\n", i, i * 7919);
  write("rows.jsonl", text);
  ASSERT_EQ(shell("gzip -c rows.jsonl | head -c 9000 >rows.jsonl.gz"), 0);
  for (const char* threads : {"1", "2"}) {
    const Outcome cut =
        run(fmt::format("grade math --keep-going --threads {} rows.jsonl.gz", threads));
    EXPECT_EQ(cut.status, 2);
    EXPECT_EQ(cut.err,
              "antisd: rows.jsonl.gz: the gzip data end too early; copy or download the file "
              "again\n");
    EXPECT_THAT(cut.out, AllOf(HasSubstr("\"correct\":true"), ::testing::Not(HasSubstr("error"))));
  }
  write("ragged.csv", "answer,response\n1\n1,\\boxed{1}\n");
  EXPECT_THAT(run("grade math ragged.csv").err,
              HasSubstr("ragged.csv:2: 1 field where the header has 2"));
  EXPECT_THAT(run("grade math --keep-going ragged.csv").out,
              AllOf(HasSubstr("ragged.csv:2"), HasSubstr("\"correct\":true")));
  write("zip.jsonl", std::string("PK\x03\x04") + "zip");
  EXPECT_THAT(run("data show zip.jsonl").err,
              HasSubstr("zip.jsonl: it is a zip archive or a workbook"));
}

}  // namespace
}  // namespace antisd::inline cli
