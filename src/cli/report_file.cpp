#include "cli/report_file.h"

#include "eval/results/text_table.h"
#include "io/atomic_file.h"
#include "report/report_page.h"
#include "report/run_finder.h"

namespace antisd::inline cli {
namespace {

constexpr std::int64_t kReadBytes = std::int64_t{64} << 20;  // of a file at a time

RunResults results_of(const RunReader& run) {
  RunResults results{.name = run.name(),
                     .method = run.method(),
                     .model = plain_value(run.config(), "model.path"),
                     .seed = plain_value(run.config(), "train.seed"),
                     .init_from = plain_value(run.config(), "train.init_from"),
                     .notes = run.notes()};
  for (const auto& [step, summary] : run.evaluations())
    results.evaluations.push_back({step, summary_from(summary, run.name())});
  return results;
}

}  // namespace

Comparison compare(const RunSet& runs) {
  std::vector<RunResults> results;
  for (const RunSet::Entry& entry : runs.runs())
    results.push_back(results_of(*entry.reader));
  return compare_runs(results);
}

Json comparison_table(const RunSet& runs) {
  const Comparison comparison = compare(runs);
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

WrittenReport write_report(const std::vector<Folder>& folders, const std::string& title,
                           const std::filesystem::path& file) {
  std::vector<std::filesystem::path> paths;
  for (const Folder& folder : folders)
    paths.push_back(folder.path());
  const std::vector<std::string> names = short_names(paths);
  RunSet runs(comparison_table);
  for (std::size_t i = 0; i < folders.size(); ++i)
    runs.add(names[i], folders[i]);
  while (runs.refresh(kReadBytes)) {
  }
  WrittenReport written{.comparison = compare(runs)};
  const std::string page = report_html(runs, title);
  write_file_atomically(file, page);
  written.bytes = page.size();
  return written;
}

}  // namespace antisd::inline cli
