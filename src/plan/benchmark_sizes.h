// How much the benchmarks of a configuration sample, without needing their files.
//
//   std::vector<std::string> unknown;
//   for (const BenchmarkSize& bench : benchmark_sizes(config, unknown)) use(bench.problems);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace antisd::inline plan {

struct BenchmarkSize {
  std::string name;
  std::int64_t problems = 0, samples = 1;
};

// Problems are the lines of the file if it is here, else those of the benchmark of that name.
// Others go to `unknown`.
std::vector<BenchmarkSize> benchmark_sizes(const RunConfig& config,
                                           std::vector<std::string>& unknown);

}  // namespace antisd::inline plan
