#include "report/run_set.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "report/report_page.h"
#include "report/run_finder.h"
#include "report/testing.h"

namespace antisd::inline report {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::make_run;
using testing::metrics_row;
using ::testing::Not;
using testing::put;
constexpr std::int64_t kWhole = 1 << 30;

// Applies an update as the page's script does: buckets from `from` on replace the existing ones.
struct Reader {
  std::int64_t version = 0;
  std::map<std::string, std::map<std::string, std::vector<Json>>> first;  // run, column
  std::map<std::string, Json> facts;

  Json apply(const RunSet& runs) {
    const Json update = parse_json(runs.update(version), "update");
    version = update["version"].get<std::int64_t>();
    for (const Json& run : update["runs"]) {
      const auto id = run["id"].get<std::string>();
      if (run.contains("facts")) facts[id] = run["facts"];
      if (!run.contains("rows")) continue;
      const auto from = run["rows"]["from"].get<std::size_t>();
      if (from == 0) first[id].clear();
      for (const auto& [name, column] : run["rows"]["columns"].items()) {
        std::vector<Json>& values = first[id][name];
        values.resize(from);
        values.insert(values.end(), column[0].begin(), column[0].end());
      }
    }
    return update;
  }
};

TEST(RunSet, UpdatesHoldOnlyWhatIsNewAndAddUp) {
  const testing::TemporaryFolder folder;
  make_run(folder / "a", "grpo", 0, 10);
  make_run(folder / "b", "antisd", 0, 20);
  RunSet runs;
  runs.add("a", Folder(folder / "a"));
  runs.add("b", Folder(folder / "b"));
  runs.refresh(kWhole);
  Reader page;
  Json update = page.apply(runs);
  EXPECT_EQ(update["runs"].size(), 2u);
  EXPECT_EQ(update["set"]["series"].size(), 2u);
  EXPECT_EQ(update["set"]["differences"][0]["key"], "method.name");
  update = page.apply(runs);
  EXPECT_TRUE(update["runs"].empty());
  EXPECT_FALSE(update.contains("set"));

  put(folder / "b" / fs::path("metrics.jsonl"), metrics_row(21, 0.5), true);
  runs.refresh(kWhole);
  update = page.apply(runs);
  ASSERT_EQ(update["runs"].size(), 1u);
  EXPECT_EQ(update["runs"][0]["rows"]["from"], 21);
  EXPECT_EQ(update["runs"][0]["rows"]["columns"]["critic/rewards/mean"][0], Json({0.5}));
}

TEST(RunSet, AReaderOfUpdatesSeesWhatANewOneSees) {
  const testing::TemporaryFolder folder;
  make_run(folder / "a", "grpo", 0, 3);
  RunSet runs;
  runs.add("a", Folder(folder / "a"));
  Reader patient, late;
  std::int64_t step = 3;
  for (int round = 0; round < 40; ++round) {
    // Grows past several widths; it is cut back once, and replaced by a shorter file once.
    std::string rows;
    for (int i = 0; i < 37 * (1 + round % 3); ++i) {
      ++step;
      rows += metrics_row(step, 0.001 * static_cast<double>(step * 7 % 1000));
    }
    if (round == 20) {
      step = 300;
      rows += metrics_row(step, 0.25);
    }
    if (round == 30) {
      make_run(folder / "a", "grpo", 0, 50);
      step = 50;
    }
    put(folder / "a" / fs::path("metrics.jsonl"), rows, true);
    runs.refresh(kWhole);
    patient.apply(runs);
    if (round % 3 == 0) late.apply(runs);
    Reader fresh;
    fresh.apply(runs);
    ASSERT_EQ(patient.first, fresh.first) << "round " << round;
    if (round % 3 == 0) {
      ASSERT_EQ(late.first, fresh.first) << "round " << round;
    }
  }
}

TEST(RunSet, ARunThatVanishes) {
  const testing::TemporaryFolder folder;
  make_run(folder / "a", "grpo", 0, 3);
  make_run(folder / "b", "grpo", 1, 3);
  RunSet runs;
  runs.add("a", Folder(folder / "a"));
  runs.add("b", Folder(folder / "b"));
  runs.refresh(kWhole);
  Reader page;
  EXPECT_EQ(page.apply(runs)["set"]["series"].size(), 1u) << "two seeds of one configuration";
  runs.remove_if([](const RunReader& run) { return run.name() == "a"; });
  EXPECT_EQ(page.apply(runs)["set"]["order"].size(), 1u);
  EXPECT_EQ(runs.find("r1"), nullptr);
}

TEST(RunFinder, RunsBelowAFolder) {
  const testing::TemporaryFolder folder;
  make_run(folder / "sweep" / fs::path("grpo 0"), "grpo", 0, 1);
  make_run(folder / "sweep" / fs::path("grpo 0/eval/not-one"), "grpo", 0, 1);
  put(folder / "begun" / fs::path("config.toml"), "");
  put(folder / "begun" / fs::path("run.json"), "{}");
  put(folder / "other" / fs::path("config.toml"), "");
  make_run(folder / "a/b/c/d/e/f/g/too-deep", "grpo", 0, 1);
  fs::create_directory_symlink(folder / "begun", folder / "latest");
  fs::create_directory_symlink(folder.path(), folder / "loop");
  std::vector<std::string> names;
  for (const FoundRun& run : find_runs(Folder(folder.path())))
    names.push_back(run.name);
  EXPECT_THAT(names, ::testing::ElementsAre("begun", "sweep/grpo 0"));
  EXPECT_EQ(find_runs(Folder(folder / "begun")).at(0).name, "begun");
  EXPECT_THAT(short_names({"/x/runs/a", "/x/runs/b/c/"}), ::testing::ElementsAre("a", "b/c"));
  EXPECT_THAT(short_names({"/x/runs/a"}), ::testing::ElementsAre("a"));
}

Json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t at = page.find(begin) + begin.size();
  return parse_json(page.substr(at, page.find("</script>", at) - at), "page");
}

TEST(ReportPage, DataComesBackAsItWentIn) {
  const testing::TemporaryFolder folder;
  const std::string evil = "</script><script>alert(1)</script><!-- & \xE2\x80\xA8 \xff";
  make_run(folder / "a b", "antisd", 0, 30);
  make_run(folder / "plain", "grpo", 0, 5);
  put(folder / "a b" / fs::path("log.txt"), "T warning: " + evil + "\n");
  put(folder / "a b" / fs::path("eval/step-000010/summary.json"), testing::summary_text(0.5));
  for (const char* run : {"a b", "plain"}) {
    put(folder / run / fs::path("rollouts/step-000003.jsonl"),
        testing::rollout_line(3, "p<1>", 0, evil) + testing::rollout_line(3, "p<1>", 1, "second"));
  }
  RunSet runs([](const RunSet& set) {
    Json rows = Json::array();
    for (const RunSet::Entry& entry : set.runs())
      rows.push_back({entry.reader->name(), std::to_string(entry.reader->evaluations().size())});
    return Json{{"head", {"run", "evaluations"}}, {"rows", rows}};
  });
  runs.add("a b", Folder(folder / "a b"));
  runs.add("<img src=x onerror=alert(2)>", Folder(folder / "plain"));
  runs.refresh(kWhole);
  const std::string page = report_html(runs, "<i>title</i>");
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, Not(HasSubstr("<img src=x")));
  EXPECT_THAT(page, HasSubstr("<h1>&lt;i&gt;title&lt;/i&gt;</h1>"));
  EXPECT_THAT(page, HasSubstr("Released under the MIT License"));
  const Json data = data_of(page);
  EXPECT_EQ(data["update"], parse_json(runs.update(0), "update"));
  EXPECT_EQ(data["update"]["runs"][0]["facts"]["name"], "a b");
  EXPECT_EQ(data["update"]["runs"][0]["facts"]["peak"], 10);
  EXPECT_EQ(data["update"]["runs"][1]["facts"]["peak"], -1);
  const Json& rows_of_comparison = data["update"]["set"]["comparison"]["rows"];
  EXPECT_EQ(rows_of_comparison.dump(), R"([["a b","1"],["<img src=x onerror=alert(2)>","0"]])");
  const Json& rows = data["samples"]["3"]["r1"]["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["prompt_id"], "p<1>");
  EXPECT_EQ(rows[0]["text"], parse_json(to_json_line(Json(evil)), "").get<std::string>());
  EXPECT_EQ(data["samples"]["3"].size(), 2u);
}

TEST(ReportPage, RunsWithNothingInThem) {
  const testing::TemporaryFolder folder;
  put(folder / "empty" / fs::path("metrics.jsonl"), "");
  put(folder / "torn" / fs::path("metrics.jsonl"), "{\"training/glob");
  RunSet runs;
  runs.add("empty", Folder(folder / "empty"));
  runs.add("torn", Folder(folder / "torn"));
  runs.add("absent", Folder(folder / "absent"));
  runs.refresh(kWhole);
  EXPECT_EQ(data_of(report_html(runs, "t"))["update"]["runs"].size(), 3u);
}

}  // namespace
}  // namespace antisd::inline report
