#include "report/run_reader.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "report/samples.h"
#include "report/testing.h"

namespace antisd::inline report {
namespace {

namespace fs = std::filesystem;
using testing::config_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::metrics_row;
using testing::put;
constexpr std::int64_t kAll = 1 << 30;

TEST(RunReader, TakesOnlyWhatIsNew) {
  const testing::TemporaryFolder folder;
  RunReader run("a", Folder(folder.path()));
  EXPECT_EQ(run.refresh(kAll).first_step, -1);  // nothing there yet
  put(folder / "metrics.jsonl", metrics_row(1, 0.1) + metrics_row(2, 0.2));
  EXPECT_EQ(run.refresh(kAll).first_step, 1);
  EXPECT_EQ(run.refresh(kAll).first_step, -1);
  const std::string row = metrics_row(3, 0.3);
  put(folder / "metrics.jsonl", row.substr(0, 20), true);
  EXPECT_EQ(run.refresh(kAll).first_step, -1) << "a torn line waits";
  put(folder / "metrics.jsonl", row.substr(20), true);
  EXPECT_EQ(run.refresh(kAll).first_step, 3);
  EXPECT_THAT(run.table().steps(), ElementsAre(1, 2, 3));
  EXPECT_THAT(run.notes(), ::testing::IsEmpty());
}

TEST(RunReader, ReadsAgainWhatWasCutOrReplaced) {
  const testing::TemporaryFolder folder;
  RunReader run("a", Folder(folder.path()));
  std::string rows;
  for (int step = 1; step <= 9; ++step)
    rows += metrics_row(step, 0.1);
  put(folder / "metrics.jsonl", rows);
  run.refresh(kAll);
  put(folder / "metrics.jsonl", metrics_row(1, 0.5) + metrics_row(2, 0.5));  // shorter, same inode
  EXPECT_EQ(run.refresh(kAll).first_step, 0);
  EXPECT_THAT(run.table().find("critic/rewards/mean")->values, ElementsAre(0.5, 0.5));
  // As long as before and longer, with another inode and with the same one.
  put(folder / "new", metrics_row(1, 0.7) + metrics_row(2, 0.7));
  fs::rename(folder / "new", folder / "metrics.jsonl");
  run.refresh(kAll);
  EXPECT_THAT(run.table().find("critic/rewards/mean")->values, ElementsAre(0.7, 0.7));
  put(folder / "metrics.jsonl", metrics_row(1, 0.8) + metrics_row(2, 0.8) + metrics_row(3, 0.8));
  run.refresh(kAll);
  EXPECT_THAT(run.table().find("critic/rewards/mean")->values, ElementsAre(0.8, 0.8, 0.8));
}

TEST(RunReader, ReadsALongFileInPieces) {
  const testing::TemporaryFolder folder;
  std::string rows;
  for (int step = 1; step <= 30'000; ++step)
    rows += metrics_row(step, step);
  put(folder / "metrics.jsonl", rows);
  RunReader run("a", Folder(folder.path()));
  int pieces = 1;
  while (run.refresh(kMaxTailLineBytes).more)
    ++pieces;
  EXPECT_GT(pieces, 2);
  ASSERT_EQ(run.table().steps().size(), 30'000u);
  EXPECT_EQ(run.table().find("critic/rewards/mean")->values[29'999], 30'000);
}

TEST(RunReader, PassesOverALineThatNeverEnds) {
  const testing::TemporaryFolder folder;
  put(folder / "metrics.jsonl",
      metrics_row(1, 1) + std::string(3 << 20, 'x') + "\n" + metrics_row(2, 2));
  RunReader run("a", Folder(folder.path()));
  while (run.refresh(1).more) {
  }
  EXPECT_THAT(run.table().steps(), ElementsAre(1, 2));
}

TEST(RunReader, FactsOfTheRun) {
  const testing::TemporaryFolder folder;
  put(folder / "config.toml", config_text("antisd", 3, "[eval]\nn = {aime24 = 4}\n"));
  put(folder / "run.json",
      R"({"method":"antisd","seed":3,"exit_reason":null,"earlier":[{},{}],"x":{"y":1}})");
  put(folder / "log.txt",
      "2026-01-01T00:00:00Z begins\n2026-01-01T00:00:01Z warning: <b>disk</b> full\n"
      "2026-01-01T00:00:02Z step 1 problem p: \" warning: not one\"\n"
      "2026-01-01T00:00:03Z warning: <b>disk</b> full\n");
  put(folder / "eval" / fs::path("step-000010/summary.json"), testing::summary_text(0.5));
  put(folder / "eval" / fs::path("step-000020/summary.json"), "{\"benches\":");
  fs::create_directories(folder / "eval" / fs::path("step-000030"));
  put(folder / "rollouts" / fs::path("step-000010.jsonl"), testing::rollout_line(10, "p", 0, "x"));
  put(folder / "rollouts" / fs::path("step-000011.jsonl.tmp"), "x");
  RunReader run("a", Folder(folder.path()));
  EXPECT_TRUE(run.refresh(kAll).facts);
  EXPECT_FALSE(run.refresh(kAll).facts);
  EXPECT_EQ(run.method(), "antisd");
  EXPECT_EQ(run.config().at("train.seed"), "3");
  EXPECT_EQ(run.run()["restarts"], 2);
  EXPECT_FALSE(run.run().contains("x"));
  ASSERT_EQ(run.warnings().size(), 1u);
  EXPECT_EQ(run.warnings()[0].text, "<b>disk</b> full");
  EXPECT_EQ(run.warnings()[0].count, 2);
  EXPECT_EQ(run.warnings()[0].last, "2026-01-01T00:00:03Z");
  ASSERT_EQ(run.evaluations().size(), 1u);
  EXPECT_EQ(run.evaluations().at(10)["benches"]["aime24"]["pass"]["4"], 0.7);
  EXPECT_THAT(run.dumps(), ElementsAre(10));
  EXPECT_THAT(run.notes(), ElementsAre(HasSubstr("eval/step-000020/summary.json")));
}

TEST(RunReader, GateEvents) {
  const testing::TemporaryFolder folder;
  std::string rows;
  for (const auto& [step, open] :
       std::vector<std::pair<int, bool>>{{1, false}, {2, true}, {3, true}, {4, false}, {5, true}})
    rows += metrics_row(step, 0, open);
  put(folder / "metrics.jsonl", rows);
  RunReader run("a", Folder(folder.path()));
  run.refresh(kAll);
  ASSERT_EQ(run.gate_events().size(), 3u);
  EXPECT_EQ(run.gate_events()[0].step, 2);
  EXPECT_TRUE(run.gate_events()[0].open);
  EXPECT_EQ(run.gate_events()[1].step, 4);
  EXPECT_FALSE(run.gate_events()[1].open);
}

TEST(RunReader, DamagedFilesAreNoted) {
  const testing::TemporaryFolder folder;
  put(folder / "config.toml", "[method\nname=");
  put(folder / "run.json", "[1,");
  put(folder / "metrics.jsonl", "garbage\n" + metrics_row(1, 1) + "\n\xff\xfe\n");
  RunReader run("a", Folder(folder.path()));
  run.refresh(kAll);
  EXPECT_EQ(run.table().steps().size(), 1u);
  EXPECT_THAT(run.notes(), ElementsAre(HasSubstr("config.toml:"), HasSubstr("run.json"),
                                       HasSubstr("2 lines are not a step's rows")));
}

TEST(Folder, NothingBeyondTheBoundary) {
  const testing::TemporaryFolder folder;
  put(folder / "secret" / fs::path("metrics.jsonl"), metrics_row(1, 1));
  put(folder / "runs" / fs::path("a/run.json"), "{}");
  put(folder / "runs-other" / fs::path("x"), "beside it, with a name that begins alike");
  fs::create_symlink(folder / "secret" / fs::path("metrics.jsonl"),
                     folder / "runs" / fs::path("a/metrics.jsonl"));
  fs::create_directory_symlink(folder / "secret", folder / "runs" / fs::path("a/eval"));
  fs::create_directory_symlink(folder / "runs" / fs::path("a"), folder / "runs" / fs::path("b"));
  const Folder run(folder / "runs" / fs::path("a"), {.boundary = fs::canonical(folder / "runs")});
  EXPECT_FALSE(run.open("metrics.jsonl"));
  EXPECT_TRUE(run.list("eval", 10).empty());
  EXPECT_FALSE(run.open("../../secret/metrics.jsonl"));
  EXPECT_FALSE(run.open("../../runs-other/x"));
  EXPECT_TRUE(run.open("run.json"));
  const Folder linked(folder / "runs" / fs::path("b"),
                      {.boundary = fs::canonical(folder / "runs")});
  EXPECT_TRUE(linked.open("run.json")) << "a link that stays inside";
  const Folder free(folder / "runs" / fs::path("a"));
  EXPECT_TRUE(free.open("metrics.jsonl"));
}

TEST(Samples, TextsWithoutTheNumbersOfTokens) {
  const testing::TemporaryFolder folder;
  const std::string text = "</script><b>\n\"x\" \xE2\x82\xAC";
  put(folder / "rollouts" / fs::path("step-000010.jsonl"),
      testing::rollout_line(10, "p 1", 0, text) + "broken\n" +
          testing::rollout_line(10, "p 1", 1, "y") +
          testing::rollout_line(10, "torn", 0, "z").substr(0, 60));
  const Json samples = read_samples(Folder(folder.path()), 10);
  ASSERT_EQ(samples["rows"].size(), 2u);
  EXPECT_EQ(samples["rows"][0]["text"], text);
  EXPECT_EQ(samples["rows"][0]["tokens"], 3);
  EXPECT_EQ(samples["rows"][0]["reward"], 1.0);
  EXPECT_EQ(samples["rows"][0]["reason"], "a \"quoted\" reason");
  EXPECT_TRUE(samples["rows"][1]["reward"].is_null());
  EXPECT_FALSE(samples["rows"][0].contains("student_logp"));
  EXPECT_TRUE(read_samples(Folder(folder.path()), 11)["rows"].empty());
}

TEST(Samples, LimitsAreSaid) {
  const testing::TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 10; ++i)
    rows += testing::rollout_line(5, "p", i,
                                  std::string(1000, 'a') + "\xE2\x82\xAC" + std::string(1000, 'b'));
  put(folder / "rollouts" / fs::path("step-000005.jsonl"), rows);
  const Json samples = read_samples(Folder(folder.path()), 5, {.rows = 4, .text_bytes = 101});
  EXPECT_EQ(samples["rows"].size(), 4u);
  EXPECT_EQ(samples["whole"], false);
  EXPECT_THAT(samples["rows"][0]["text"].get<std::string>(), HasSubstr("bytes left out"));
  EXPECT_LT(samples["rows"][0]["text"].get<std::string>().size(), 200u);
  EXPECT_EQ(read_samples(Folder(folder.path()), 5)["whole"], true);
}

}  // namespace
}  // namespace antisd::inline report
