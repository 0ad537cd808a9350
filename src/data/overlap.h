// Which problems of a benchmark are in the training data: equal after normalisation, or similar, by
// the share of the benchmark problem's word 5-grams that one training problem contains.
//
//   OverlapIndex index(benchmark_texts, 0.6);
//   for (const std::string& text : training_texts) index.add(text);
//   index.best(3);  // {exact, row of the best match, containment} of benchmark problem 3
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace antisd::inline data {

struct OverlapMatch {
  std::int64_t row = -1;     // of the training problem, in the order of add(); -1: none
  bool exact = false;        // equal after normalisation
  double containment = 0.0;  // of the benchmark problem's 5-grams in that row; 1 where exact
};

class OverlapIndex {
 public:
  // A training problem counts as found above this share of some benchmark problem's 5-grams.
  OverlapIndex(const std::vector<std::string>& benchmark, double near_duplicate);

  void add(const std::string& training);

  std::int64_t rows_found() const { return rows_found_; }  // training problems, exact or near
  // The first exact match, else the first with the highest containment.
  const OverlapMatch& best(std::size_t problem) const { return best_[problem]; }

 private:
  double near_duplicate_;
  std::int64_t rows_ = 0;
  std::int64_t rows_found_ = 0;
  std::vector<OverlapMatch> best_;
  std::vector<std::int32_t> gram_counts_;                             // per benchmark problem
  std::unordered_map<std::string, std::vector<std::int32_t>> exact_;  // normalised text -> problems
  std::unordered_map<std::uint64_t, std::vector<std::int32_t>> grams_;  // 5-gram -> problems
  std::vector<std::int32_t> shared_;   // per benchmark problem, zero between calls of add()
  std::vector<std::int32_t> touched_;  // indices of nonzero entries of shared_
};

}  // namespace antisd::inline data
