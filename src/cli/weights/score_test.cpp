// `score` as a user runs it: batches, bad rows, pipes, models that are too large or broken.

#include <algorithm>

#include "cli/command_testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::parse_rows;
using ::testing::StartsWith;

class Score : public testing::CommandTest {
 protected:
  // Rows of different lengths, some with a common prefix.
  static std::string score_row(int i) {
    Json row = {{"id", i}, {"prompt_ids", Json::array()}, {"response_ids", Json::array()}};
    for (int t = 0; t < 18 + i % 5; ++t)
      row["prompt_ids"].push_back((i % 3 + 7 * t) % 40);
    for (int t = 0; t <= i % 9; ++t)
      row["response_ids"].push_back((i + 5 * t) % 40);
    return to_json_line(row) + "\n";
  }

  const std::string model_ = testing::fixture("model/llama_mha_tied").string();
};

TEST_F(Score, LogpAndEntropyOfIds) {
  const Outcome scored =
      run("score " + model_, R"({"id":"a","prompt_ids":[1,2,3],"response_ids":[4,5]})");
  ASSERT_EQ(scored.status, 0) << scored.err;
  const Json row = Json::parse(scored.out);
  EXPECT_EQ(row["id"], "a");
  EXPECT_EQ(row["logp"].size(), 2u);
  EXPECT_LT(row["logp"][0], 0.0);
  EXPECT_GT(row["entropy"][1], 0.0);
  const Outcome outside = run("score " + model_, R"({"prompt_ids":[1],"response_ids":[4000]})");
  EXPECT_EQ(outside.status, 2);
  EXPECT_THAT(outside.err, HasSubstr("standard input:1: the response holds id 4000"));
  EXPECT_THAT(run("score " + model_, R"({"prompt":"a","response":"b"})").err,
              HasSubstr("tokenizer"));
  EXPECT_EQ(run("score --device cuda:7 " + model_).status, 2);
  EXPECT_EQ(run("score no/such/model").status, 2);
}

// Each of 4, 8 and 32 bits is closer to the exact weights than the one before.
TEST_F(Score, TakesABaseOfFewerBits) {
  const std::string row = score_row(8);
  const auto logp = [&](const std::string& base) {
    const Outcome scored = run("score --base-dtype " + base + " " + model_, row);
    EXPECT_EQ(scored.status, 0) << scored.err;
    return Json::parse(scored.out)["logp"].get<std::vector<double>>();
  };
  const std::vector<double> exact = logp("model"), int8 = logp("int8"), nf4 = logp("nf4");
  EXPECT_EQ(exact, Json::parse(run("score " + model_, row).out)["logp"].get<std::vector<double>>());
  const auto gap = [&](const std::vector<double>& other) {
    double sum = 0;
    for (std::size_t i = 0; i < exact.size(); ++i)
      sum += std::abs(exact[i] - other[i]);
    return sum / static_cast<double>(exact.size());
  };
  EXPECT_GT(gap(int8), 0);
  EXPECT_LT(gap(int8), 0.05);
  EXPECT_GT(gap(nf4), 2 * gap(int8));
  EXPECT_LT(gap(nf4), 0.5);
  EXPECT_EQ(run("score --base-dtype int2 " + model_, row).status, 2);
}

TEST_F(Score, RowsInABatchGetTheScoresTheyGetAlone) {
  std::string rows;
  for (int i = 0; i < 60; ++i)
    rows += score_row(i);
  const auto alone = parse_rows(run("score --threads 1 --batch-tokens 1 " + model_, rows).out);
  const std::string file = write("rows.jsonl", rows);
  for (const char* tokens : {"200", "1000000"}) {
    const auto together = parse_rows(
        run(fmt::format("score --threads 1 --batch-tokens {} {} {}", tokens, model_, file)).out);
    ASSERT_EQ(together.size(), 60u);
    ASSERT_EQ(alone.size(), 60u);
    for (std::size_t i = 0; i < together.size(); ++i) {
      EXPECT_EQ(together[i]["id"], i);
      ASSERT_EQ(together[i]["logp"].size(), i % 9 + 1);
      for (const char* field : {"logp", "entropy"}) {
        for (std::size_t t = 0; t < together[i][field].size(); ++t) {
          EXPECT_NEAR(together[i][field][t].get<double>(), alone[i][field][t].get<double>(), 1e-5);
        }
      }
    }
  }
}

TEST_F(Score, ABadRowInTheMiddleOfABatch) {
  std::string rows;
  for (int i = 0; i < 5; ++i)
    rows += score_row(i);
  const std::string no_ids = "{\"id\":\"x\",\"prompt_ids\":[1]}\n",
                    outside = "{\"prompt_ids\":[1],\"response_ids\":[4000]}\n",
                    empty = "{\"prompt_ids\":[1],\"response_ids\":[]}\n";
  const std::string long_row = to_json_line(
      {{"prompt_ids", std::vector<int>(5000, 1)}, {"response_ids", std::vector<int>{1}}});
  const Outcome stopped = run("score --threads 1 " + model_, rows + outside + rows);
  EXPECT_EQ(stopped.status, 2);
  EXPECT_EQ(parse_rows(stopped.out).size(), 5u);
  EXPECT_THAT(stopped.err, StartsWith("antisd: standard input:6: the response holds id 4000"));
  EXPECT_THAT(run("score --threads 1 " + model_, rows + "no json\n").err,
              StartsWith("antisd: standard input:6: not valid JSON"));
  EXPECT_THAT(run("score --threads 1 " + model_, rows + empty).err,
              StartsWith("antisd: standard input:6: the response is empty; give at least one"));
  EXPECT_THAT(run("score --threads 1 " + model_, rows + long_row).err,
              AllOf(StartsWith("antisd: standard input:6: prompt and response have 5001 tokens"),
                    HasSubstr("max_position_embeddings"), HasSubstr("shorten")));

  const Outcome all = run("score --threads 1 --keep-going " + model_,
                          no_ids + rows + outside + "[1]\n" + rows + empty);
  EXPECT_EQ(all.status, 0);
  const std::vector<Json> out = parse_rows(all.out);
  ASSERT_EQ(out.size(), 14u);
  EXPECT_EQ(out[0], Json({{"id", "x"},
                          {"error",
                           "the row has no 'response_ids'; it has 'id', "
                           "'prompt_ids'"}}));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(out[static_cast<std::size_t>(1 + i)]["id"], i);
    EXPECT_EQ(out[static_cast<std::size_t>(8 + i)]["logp"].size(), static_cast<std::size_t>(i + 1));
  }
  EXPECT_THAT(out[6]["error"].get<std::string>(), StartsWith("the response holds id 4000"));
  EXPECT_THAT(out[7]["error"].get<std::string>(), StartsWith("standard input:8: "));
  EXPECT_THAT(out[13]["error"].get<std::string>(), StartsWith("the response is empty"));
}

// A program that waits for an answer before it writes the next row gets one.
TEST_F(Score, APipeThatPausesIsAnswered) {
  write("first", score_row(1));
  write("answers", "");
  ASSERT_EQ(shell("mkfifo pipe && (antisd score --threads 1 '" + model_ +
                  "' <pipe >answers &) && exec 3>pipe && cat first >&3 && "
                  "for i in $(seq 600); do [ -s answers ] && break; sleep 0.1; done; "
                  "wc -l <answers >seen; exec 3>&-"),
            0);
  EXPECT_EQ(std::stoi(read_file(folder_ / "seen")), 1);
}

TEST_F(Score, ModelsThatDoNotFitIntoMemorySayWhatToDo) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a sanitizer needs the address space that this test takes away";
#endif
  Json config = Json::parse(read_file(testing::fixture("model/llama_mha_tied/config.json")));
  config["vocab_size"] = 1 << 26;
  config["hidden_size"] = 4096;  // an embedding of 1 TiB
  const fs::path large = folder_ / "large";
  fs::create_directories(large);
  write_file_atomically(large / "config.json", config.dump());
  EXPECT_EQ(shell("ulimit -v 64000000; antisd score large </dev/null 2>err"), 1);
  EXPECT_THAT(
      read_file(folder_ / "err"),
      AllOf(StartsWith("antisd: out of memory: 1024.00 GiB were requested, "),
            HasSubstr("GiB are free; put fewer tokens into a batch"), EndsWith("more memory\n")));
}

TEST_F(Score, WeightsWithNanAreRefusedWhenAsked) {
  const fs::path model = folder_ / "model";
  fs::copy(model_, model);
  std::string bytes = read_file(model / "model.safetensors");
  std::fill(bytes.end() - 8, bytes.end(), '\xff');  // NaN in every precision
  write_file_atomically(model / "model.safetensors", bytes);
  const Outcome refused = run("score --threads 1 --check-weights " + model.string(), score_row(1));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("the tensor model."), HasSubstr("holds NaN or infinity"),
                                 HasSubstr("fetch the weights again")));
}

TEST_F(Score, RanksGiveTheRowsOfOneProcess) {
  std::string rows;
  for (int i = 0; i < 60; ++i)
    rows += score_row(i);
  const Outcome one = run("score " + model_ + " --batch-tokens 300", rows);
  const Outcome three = run("score " + model_ + " --batch-tokens 300 --processes 3", rows);
  ASSERT_EQ(three.status, 0) << three.err;
  EXPECT_EQ(three.out, one.out);
  const Outcome bad = run("score " + model_ + " --processes 2", rows + "{}\n");
  EXPECT_EQ(bad.status, 2);
  EXPECT_EQ(bad.out, run("score " + model_, rows).out);
  EXPECT_THAT(bad.err, AllOf(HasSubstr("standard input:61: "), Not(HasSubstr("rank 1"))));
}

}  // namespace
}  // namespace antisd::inline cli
