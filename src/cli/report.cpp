// `report RUN... -o report.html`.
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/report_file.h"
#include "core/error.h"
#include "core/note.h"
#include "io/atomic_file.h"
#include "report/run_finder.h"

namespace antisd::inline cli {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string output = "report.html";
  std::string title = "Comparison of runs";
  std::string csv, pass_csv, latex;  // files; "" is none
};

// A folder that holds runs stands for all runs below it.
std::vector<Folder> run_folders(const std::vector<std::string>& names) {
  std::vector<Folder> folders;
  for (const std::string& name : names) {
    const std::vector<FoundRun> found = find_runs(Folder(name));
    if (found.empty()) {
      throw InputError(
          "not a run directory: it has neither metrics.jsonl nor config.toml and run.json",
          {.where = name, .remedy = "name the folder that `train` wrote (record.dir)"});
    }
    for (const FoundRun& run : found)
      folders.push_back(run.folder);
  }
  return folders;
}

void write_tables(const ReportOptions& options, const Comparison& comparison) {
  if (!options.csv.empty()) write_file_atomically(options.csv, comparison_csv(comparison));
  if (!options.pass_csv.empty())
    write_file_atomically(options.pass_csv, pass_curves_csv(comparison));
  if (!options.latex.empty()) write_file_atomically(options.latex, comparison_latex(comparison));
  if (!comparison.benches.empty()) std::cout << comparison_text(comparison);
}

int report(const ReportOptions& options) {
  const std::vector<Folder> folders = run_folders(options.runs);
  const WrittenReport written = write_report(folders, options.title, options.output);
  write_tables(options, written.comparison);
  note(fmt::format("{}: {} run{}, {:.1f} MB", options.output, folders.size(),
                   folders.size() == 1 ? "" : "s", static_cast<double>(written.bytes) / 1e6));
  return 0;
}

}  // namespace

std::function<int()> add_report(CLI::App& app) {
  const auto options = std::make_shared<ReportOptions>();
  app.add_option("RUN", options->runs, "run directories, or folders that contain some")->required();
  app.add_option("-o,--output", options->output, "output file: one HTML page that needs no network")
      ->capture_default_str();
  app.add_option("--title", options->title, "heading of the page")->capture_default_str();
  app.add_option("--csv", options->csv, "also write the evaluations at each run's peak as CSV");
  app.add_option("--pass-csv", options->pass_csv, "also write the pass@k curves as CSV");
  app.add_option("--latex", options->latex, "also write the table as a LaTeX tabular (booktabs)");
  return [options] { return report(*options); };
}

}  // namespace antisd::inline cli
