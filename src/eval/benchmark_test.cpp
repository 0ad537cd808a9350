#include "eval/benchmark.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd::inline eval {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BenchmarkTest : public ::testing::Test {
 protected:
  BenchmarkTest() { config_.eval.dir = folder_.path().string(); }
  std::string put(const std::string& name, const std::string& text) const {
    write_file_atomically(folder_ / name, text);
    return (folder_ / name).string();
  }
  std::string error(const std::string& name) const {
    return testing::error_of([&] { load_benchmark(name, config_); });
  }
  testing::TemporaryFolder folder_;
  RunConfig config_;
};

TEST_F(BenchmarkTest, IsFoundByNameOrPath) {
  const std::string row = R"({"id":"a","problem":"1+1?","answer":"2"})";
  put("aime24.jsonl", row);
  put("gsm8k_test.jsonl", row);
  const std::string path = put("own.jsonl", row);
  EXPECT_EQ(load_benchmark("aime24", config_).n, 32);
  EXPECT_EQ(load_benchmark("gsm8k", config_).name, "gsm8k");
  EXPECT_EQ(load_benchmark(path, config_).name, "own");
  EXPECT_EQ(load_benchmark(path, config_).n, 1);
  config_.eval.n["gsm8k"] = 1;
  config_.eval.n["gsm8k_test"] = 3;  // the file's name also works
  EXPECT_EQ(load_benchmark("gsm8k", config_).n, 1);
  config_.eval.n.erase("gsm8k");
  EXPECT_EQ(load_benchmark("gsm8k", config_).n, 3);
  config_.eval.n["default"] = 6;
  EXPECT_EQ(load_benchmark("own", config_).n, 6);
  EXPECT_THAT(error("aime42"), AllOf(HasSubstr("eval.benches: there is no benchmark 'aime42'"),
                                     HasSubstr("did you mean 'aime24'?")));
  EXPECT_THAT(error("completely-else"), HasSubstr("there are aime24, gsm8k, own"));
  EXPECT_THAT(error("nowhere/x.jsonl"), HasSubstr("nowhere/x.jsonl"));
  config_.eval.dir = (folder_ / "none").string();
  EXPECT_THAT(error("aime24"), HasSubstr("set eval.dir"));
}

TEST_F(BenchmarkTest, ChoosesTheGraderByItsRows) {
  put("math.jsonl", R"({"problem":"1+1?","answer":"2"})");
  put("code.jsonl", R"({"problem":"f","tests":{"kind":"asserts","code":"assert f(1) == 2"}})");
  put("raw.jsonl",
      R"({"task_id":"HumanEval/0","prompt":"def f(x):\n","entry_point":"f","canonical_solution":"    return x\n","test":"def check(candidate):\n    assert candidate(1) == 1\n"})");
  put("countdown.jsonl", R"({"numbers":[4,11,3,6],"target":29})");
  EXPECT_EQ(load_benchmark("math", config_).grader, "math");
  EXPECT_EQ(load_benchmark("code", config_).grader, "code");
  const Benchmark raw = load_benchmark("raw", config_);
  EXPECT_EQ(raw.grader, "code");
  EXPECT_EQ(raw.problems[0].tests["entry_point"], "f");
  const Benchmark countdown = load_benchmark("countdown", config_);
  EXPECT_EQ(countdown.grader, "countdown");
  EXPECT_EQ(countdown.problems[0].problem, "Numbers 4 11 3 6 target 29");
  const Benchmark made = load_benchmark("countdown:3:held-out:5", config_);
  EXPECT_EQ(made.grader, "countdown");
  EXPECT_EQ(made.name, "countdown-3-held-out");
  EXPECT_THAT(made.problems, SizeIs(5));
  config_.reward.kind = "code";
  EXPECT_EQ(load_benchmark("math", config_).grader, "math");  // it has no tests
  config_.reward.kind = "command";
  EXPECT_EQ(load_benchmark("code", config_).grader, "command");
}

TEST_F(BenchmarkTest, TakesTheWordsOfItsTask) {
  put("math.jsonl", R"({"problem":"1+1?","answer":"2"})");
  put("countdown.jsonl", R"({"numbers":[4,11,3,6],"target":29})");
  config_.data.template_name = "Please: {problem}";
  EXPECT_EQ(benchmark_template(load_benchmark("math", config_), config_), "Please: {problem}");
  EXPECT_EQ(benchmark_template(load_benchmark("countdown", config_), config_), "countdown");
}

TEST_F(BenchmarkTest, RefusesWhatCannotBeGraded) {
  put("empty.jsonl", "\n");
  put("noanswer.jsonl", "{\"problem\":\"a\",\"answer\":\"1\"}\n{\"id\":\"x\",\"problem\":\"b\"}");
  put("mixed.jsonl",
      "{\"problem\":\"f\",\"tests\":{\"kind\":\"asserts\",\"code\":\"assert f(1) == 2\"}}\n"
      "{\"id\":\"y\",\"problem\":\"b\",\"answer\":\"1\"}");
  put("numbers.jsonl", R"({"numbers":["a"],"target":29})");
  put("broken.jsonl", "{");
  EXPECT_THAT(error("empty"), HasSubstr("no problems"));
  EXPECT_THAT(error("noanswer"), HasSubstr("problem 'x' has no answer"));
  EXPECT_THAT(error("mixed"), HasSubstr("problem 'y' has no tests"));
  EXPECT_THAT(error("numbers"), HasSubstr("numbers.jsonl:1: 'numbers' is not a list"));
  EXPECT_THAT(error("broken"), HasSubstr("broken.jsonl:1"));
  config_.eval.benches = {put("a.jsonl", R"({"problem":"a","answer":"1"})"), "a"};
  EXPECT_THAT(testing::error_of([&] { load_benchmarks(config_); }),
              HasSubstr("two benchmarks have the name 'a'"));
}

TEST_F(BenchmarkTest, NotesTrainingProblems) {
  put("bench.jsonl",
      "{\"id\":\"p1\",\"problem\":\"How many primes are there below one "
      "hundred?\",\"answer\":\"25\"}\n"
      "{\"id\":\"p2\",\"problem\":\"What is the largest prime factor of "
      "12345?\",\"answer\":\"823\"}");
  const std::string train =
      put("train.jsonl", R"({"question":"how many  primes are there below one hundred?"})");
  const std::vector<Benchmark> benchmarks = {load_benchmark("bench", config_)};
  const std::vector<std::string> notes =
      overlap_notes(benchmarks, {train}, {{"problem", "question"}});
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_THAT(notes[0], AllOf(HasSubstr("1 of the 2 problems of bench"), HasSubstr("p1")));
  EXPECT_THAT(overlap_notes(benchmarks, {}, {}), IsEmpty());
}

TEST_F(BenchmarkTest, ACountForNoBenchmarkIsRefused) {
  put("own.jsonl", R"({"problem":"1+1?","answer":"2"})");
  put("beside.jsonl", R"({"problem":"1+1?","answer":"2"})");
  config_.eval.benches = {(folder_ / "own.jsonl").string(), "countdown:3:held-out:4"};
  config_.eval.n = {{"own", 3}, {"default", 2}, {"math500", 4}, {"beside", 5}, {"countdown", 7}};
  const std::vector<Benchmark> benchmarks = load_benchmarks(config_);
  EXPECT_EQ(benchmarks[0].n, 3);
  EXPECT_EQ(benchmarks[1].n, 7);
  config_.eval.n["math50"] = 8;
  EXPECT_THAT(testing::error_of([&] { load_benchmarks(config_); }),
              AllOf(HasSubstr("eval.n: 'math50' is neither"), HasSubstr("mean 'math500'?")));
  // A run's own entries for benchmarks that are not requested now are allowed.
  EvalConfig of_run = config_.eval;
  drop_unknown_sample_counts(of_run, config_.eval.n);
  EXPECT_EQ(of_run.n.count("math50"), 0);
  EXPECT_EQ(of_run.n.at("own"), 3);
}

TEST_F(BenchmarkTest, ReadsTheRealOnes) {
  const std::filesystem::path shared = testing::shared_data("bench");
  ANTISD_NEEDS_SHARED(shared);
  config_.eval.dir = shared.string();
  const std::vector<std::pair<std::string, std::size_t>> sizes = {
      {"aime24", 30},   {"aime25", 30},   {"aime26", 30}, {"hmmt_feb25", 30},
      {"minerva", 272}, {"math500", 500}, {"amc23", 40},  {"gsm8k", 1319}};
  for (const auto& [name, size] : sizes) {
    const Benchmark benchmark = load_benchmark(name, config_);
    EXPECT_THAT(benchmark.problems, SizeIs(size)) << name;
    EXPECT_EQ(benchmark.grader, "math");
    EXPECT_EQ(benchmark.n, config_.eval.n.at(name));
  }
  config_.eval.dir = testing::shared_data("code").string();
  for (const auto& [name, size] : {std::pair("humanevalplus", 164), std::pair("mbppplus", 378)}) {
    const Benchmark benchmark = load_benchmark(name, config_);
    EXPECT_THAT(benchmark.problems, SizeIs(size)) << name;
    EXPECT_EQ(benchmark.grader, "code");
    EXPECT_EQ(benchmark.n, 10);
  }
}

}  // namespace
}  // namespace antisd::inline eval
