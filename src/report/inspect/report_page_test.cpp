#include "report/inspect/report_page.h"

#include <gmock/gmock.h>

#include "report/inspect/analysis.h"
#include "report/inspect/terminal.h"
#include "report/inspect/testing.h"

namespace antisd::inline report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json report_of(const std::vector<Inspection>& inspections) {
  Analysis analysis(WordList::parse(WordList::default_text(), "built in"), testing::few_words());
  Json responses = Json::array();
  for (const Inspection& inspection : inspections) {
    analysis.add(inspection);
    responses.push_back(to_json(inspection, analysis.kinds_of(inspection)));
  }
  return {{"model", "m & <m>"},
          {"method", "antisd"},
          {"formula", "A - lambda phi(u)"},
          {"kinds", analysis.words().kinds()},
          {"summary", analysis.summary()},
          {"responses", responses}};
}

std::vector<Inspection> some(std::initializer_list<std::size_t> sizes) {
  std::mt19937 random(2);
  std::vector<Inspection> all;
  for (const std::size_t size : sizes)
    all.push_back(testing::random_inspection(random, fmt::format("p{}", all.size()), size,
                                             testing::method_named("antisd")));
  return all;
}

// The report that a page contains.
Json embedded(const std::string& page) {
  const std::string opening = "const report = ";
  const std::size_t begin = page.find(opening) + opening.size();
  return Json::parse(page.substr(begin, page.find(";\n", begin) - begin));
}

TEST(ReportPage, HoldsTheVeryNumbersOfTheReport) {
  const Json report = report_of(some({40, 3, 0}));
  const std::string page = report_page(report);
  EXPECT_EQ(embedded(page), Json::parse(to_json_line(report)));
  // Charts show the same numbers: a bar's title has its bin's.
  const Json& bin = report["summary"]["position"][2];
  EXPECT_THAT(page, HasSubstr(fmt::format("2 to 4: mean u {} [", bin["mean"].dump())));
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

TEST(ReportPage, TextOfAResponseIsText) {
  Inspection inspection = some({1}).front();
  inspection.response.ids = {5};
  inspection.id = "</script><b>";
  inspection.response.verdict.reason = "<img src=x onerror=alert(1)>";
  inspection.response.context.prompt_ids = {5};
  describe(inspection, testing::few_words());
  const std::string page = report_page(report_of({inspection}));
  EXPECT_EQ(embedded(page)["responses"][0]["tokens"][0], " <script>alert(1)</script>");
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(page, HasSubstr("m &amp; &lt;m&gt;"));
}

TEST(ReportPage, ALongResponseIsBounded) {
  const Json report = report_of(some({32'768, 32'768, 32'768}));
  const Json bounded = bounded_report(report);
  EXPECT_EQ(bounded["responses"][1]["u"].size(), 32'768u);
  EXPECT_EQ(bounded["responses"][2]["u"].size(), 0u);
  EXPECT_EQ(bounded["responses"][2]["token_count"], 32'768u);
  EXPECT_EQ(bounded["summary"], report["summary"]);
  const Json cut = bounded_report(report, 40'000);
  for (const char* name : {"ids", "tokens", "kind", "s", "h_t"})
    EXPECT_EQ(cut["responses"][1][name].size(), 40'000u - 32'768u) << name;
  EXPECT_LT(cut["responses"][1]["special"].back(), 40'000 - 32'768);
  const std::string page = report_page(report);
  EXPECT_LT(page.size(), 9u << 20);
  EXPECT_THAT(page, HasSubstr("(the first 0 are shown)"));
}

TEST(Terminal, ATableOrColours) {
  std::vector<Inspection> inspections = some({5, 0});
  inspections[0].tokens[1] = "a\033[31mb";
  const Json report = report_of(inspections);
  const std::string table = response_text(report["responses"][0], report["kinds"], false);
  EXPECT_THAT(table, Not(HasSubstr("\033")));
  EXPECT_THAT(table, HasSubstr("a\\x1B[31mb"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2 + 5);
  EXPECT_THAT(table, HasSubstr(fmt::format("{:.4f}", inspections[0].u[4])));
  const std::string coloured = response_text(report["responses"][0], report["kinds"], true);
  EXPECT_THAT(coloured, HasSubstr("\033[48;5;"));
  EXPECT_THAT(coloured, Not(HasSubstr("\033[31m")));
  EXPECT_THAT(summary_text(report["summary"]), HasSubstr("deliberation"));
  EXPECT_THAT(response_text(report["responses"][1], report["kinds"], true), HasSubstr("0 tokens"));
  EXPECT_THAT(summary_text(report_of({})["summary"]), HasSubstr("0 responses"));
}

}  // namespace
}  // namespace antisd::inline report
