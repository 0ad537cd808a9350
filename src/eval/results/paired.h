// Compares two evaluations problem by problem: the difference and its interval.
//
//   const PairedComparison gain = compare_evaluations("eval/antisd", "eval/grpo");
//   std::cerr << paired_text(gain);
//
// On the same problems the difference is known more precisely than either accuracy.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "eval/results/interval.h"
#include "io/json.h"

namespace antisd::inline eval {

struct PairedComparison {
  std::vector<std::pair<std::string, Difference>> benches;  // those that both have
  Difference average;                                       // over them, unweighted
  std::vector<std::string> missing;                         // benchmarks that one of them lacks
};

// a - b, from the rows of two finished evaluations. Problems are matched by id. InputError if
// either is not an evaluation, or if they have no common benchmark.
PairedComparison compare_evaluations(const std::filesystem::path& a,
                                     const std::filesystem::path& b);

std::string paired_text(const PairedComparison& comparison);
Json to_json(const PairedComparison& comparison);

}  // namespace antisd::inline eval
