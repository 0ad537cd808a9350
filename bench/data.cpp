#include "bench/data.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "core/error.h"
#include "data/prompt_set.h"

namespace antisd::bench {

int run_data(const std::vector<std::string>& arguments) {
  std::vector<std::string> files;
  int repeats = 5;
  bool json = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--json") {
      json = true;
    } else if (arguments[i] == "--repeats" && i + 1 < arguments.size()) {
      repeats = std::max(1, std::atoi(arguments[++i].c_str()));
    } else {
      files.push_back(arguments[i]);
    }
  }
  if (files.empty())
    throw InputError("no file given", {.remedy = "antisd-bench data train.parquet"});
  for (const std::string& file : files) {
    double best = 1e9;
    std::size_t rows = 0;
    for (int i = 0; i < repeats; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      rows = PromptSet::load({.files = {file}}).size();
      best = std::min(
          best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
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
