#include <algorithm>

#include <fmt/format.h>

#include "bench/benchmarks.h"
#include "bench/options.h"
#include "core/stopwatch.h"
#include "data/prompt_set.h"

namespace antisd::bench {

int run_data(const Arguments& arguments) {
  std::vector<std::string> files;
  int repeats = 5;
  bool json = false;
  CLI::App app("seconds to read each file into a PromptSet", "antisd-bench data");
  app.add_option("files", files, "data sets")->required();
  add_number(app, "--repeats", repeats, 1, 1000, "the fastest counts");
  app.add_flag("--json", json, "one line of JSON per file");
  if (const auto status = parse(app, arguments)) return *status;
  for (const std::string& file : files) {
    double best = 1e9;
    std::size_t rows = 0;
    for (int i = 0; i < repeats; ++i) {
      Stopwatch watch;
      rows = PromptSet::load({.files = {file}}).size();
      best = std::min(best, watch.lap());
    }
    if (json) {
      fmt::print(
          "{}\n",
          to_json_line({{"bench", "data"}, {"file", file}, {"rows", rows}, {"seconds", best}}));
    } else {
      fmt::print("{}: {} rows in {:.3f} s (best of {})\n", file, rows, best, repeats);
    }
  }
  return 0;
}

}  // namespace antisd::bench
