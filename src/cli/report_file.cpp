#include "cli/report_file.h"

#include "io/atomic_file.h"
#include "report/report_page.h"
#include "report/run_finder.h"
#include "results/text_table.h"

namespace antisd {
namespace {

constexpr std::int64_t kReadBytes = std::int64_t{64} << 20;  // of a file at a time

Comparison compare(const std::vector<std::filesystem::path>& paths,
                   const std::vector<std::string>& names) {
  std::vector<RunResults> results;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    results.push_back(read_run_results(paths[i]));
    results.back().name = names[i];
  }
  return compare_runs(results);
}

// The table above the page's evaluations; the page has the intervals of single benchmarks below it.
Json comparison_json(const Comparison& comparison) {
  if (comparison.benches.empty()) return nullptr;
  Json head = {"run", "method", "best at step", "average, %", "95 % interval", "speedup over GRPO"};
  Json rows = Json::array();
  for (const ComparisonRow& row : comparison.rows) {
    const std::string mark = row.partial ? "*" : "";
    rows.push_back({row.name, row.method.empty() ? "-" : row.method,
                    row.step ? std::to_string(*row.step) : "-",
                    row.peak ? percent_text(row.peak->average) + mark : "-",
                    row.peak ? interval_text(row.peak->average_interval) : "-",
                    row.speedup + (row.speedup_partial ? "*" : "")});
  }
  return {{"head", std::move(head)}, {"rows", std::move(rows)}};
}

}  // namespace

WrittenReport write_report(const std::vector<Folder>& folders, const std::string& title,
                           const std::filesystem::path& file) {
  std::vector<std::filesystem::path> paths;
  for (const Folder& folder : folders)
    paths.push_back(folder.path());
  const std::vector<std::string> names = short_names(paths);
  RunSet runs;
  for (std::size_t i = 0; i < folders.size(); ++i)
    runs.add(names[i], folders[i]);
  while (runs.refresh(kReadBytes)) {
  }
  WrittenReport written{.comparison = compare(paths, names)};
  const std::string page = report_html(runs, title, comparison_json(written.comparison));
  write_file_atomically(file, page);
  written.bytes = page.size();
  return written;
}

}  // namespace antisd
