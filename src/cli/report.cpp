// `report RUN... -o report.html`.
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "report/report_page.h"
#include "report/run_finder.h"

namespace antisd {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string output = "report.html";
  std::string title = "Comparison of runs";
};

// A folder of runs stands for those below it.
std::vector<Folder> run_folders(const std::vector<std::string>& names) {
  std::vector<Folder> folders;
  for (const std::string& name : names) {
    const std::vector<FoundRun> found = find_runs(Folder(name));
    if (found.empty()) {
      throw InputError(
          "no run directory: it has neither metrics.jsonl nor config.toml and run.json",
          {.where = name, .remedy = "name the folder that `train` wrote (record.dir)"});
    }
    for (const FoundRun& run : found)
      folders.push_back(run.folder);
  }
  return folders;
}

int report(const ReportOptions& options) {
  const std::vector<Folder> folders = run_folders(options.runs);
  std::vector<std::filesystem::path> paths;
  for (const Folder& folder : folders)
    paths.push_back(folder.path());
  const std::vector<std::string> names = short_names(paths);
  RunSet runs;
  for (std::size_t i = 0; i < folders.size(); ++i)
    runs.add(names[i], folders[i]);
  while (runs.refresh(std::int64_t{64} << 20)) {
  }
  const std::string page = report_html(runs, options.title);
  write_file_atomically(options.output, page);
  std::cerr << fmt::format("{}: {} run{}, {:.1f} MB\n", options.output, folders.size(),
                           folders.size() == 1 ? "" : "s", static_cast<double>(page.size()) / 1e6);
  return 0;
}

}  // namespace

std::function<int()> add_report(CLI::App& app) {
  const auto options = std::make_shared<ReportOptions>();
  app.add_option("RUN", options->runs, "run directories, or folders that hold some")->required();
  app.add_option("-o,--output", options->output, "the page, one HTML file that needs no network")
      ->capture_default_str();
  app.add_option("--title", options->title, "its heading")->capture_default_str();
  return [options] { return report(*options); };
}

}  // namespace antisd
