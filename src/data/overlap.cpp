#include "data/overlap.h"

#include "data/normalise.h"

namespace antisd::inline data {
namespace {

constexpr std::size_t kGramWords = 5;
// Benchmark problems with fewer 5-grams are too short for a meaningful share.
constexpr std::size_t kMinGrams = 4;

}  // namespace

OverlapIndex::OverlapIndex(const std::vector<std::string>& benchmark, double near_duplicate)
    : near_duplicate_(near_duplicate),
      best_(benchmark.size()),
      gram_counts_(benchmark.size()),
      shared_(benchmark.size()) {
  for (std::size_t i = 0; i < benchmark.size(); ++i) {
    const std::int32_t problem = static_cast<std::int32_t>(i);
    exact_[normalised_text(benchmark[i])].push_back(problem);
    const std::vector<std::uint64_t> grams = word_ngrams(benchmark[i], kGramWords);
    if (grams.size() < kMinGrams) continue;
    gram_counts_[i] = static_cast<std::int32_t>(grams.size());
    for (const std::uint64_t gram : grams)
      grams_[gram].push_back(problem);
  }
}

void OverlapIndex::add(const std::string& training) {
  const std::int64_t row = rows_++;
  bool found_one = false;
  if (const auto same = exact_.find(normalised_text(training)); same != exact_.end()) {
    for (const std::int32_t problem : same->second) {
      if (!best_[problem].exact) best_[problem] = {row, true, 1.0};
    }
    found_one = true;
  }
  for (const std::uint64_t gram : word_ngrams(training, kGramWords)) {
    const auto found = grams_.find(gram);
    if (found == grams_.end()) continue;
    for (const std::int32_t problem : found->second) {
      if (shared_[problem]++ == 0) touched_.push_back(problem);
    }
  }
  for (const std::int32_t problem : touched_) {
    const double containment = static_cast<double>(shared_[problem]) / gram_counts_[problem];
    found_one = found_one || containment > near_duplicate_;
    OverlapMatch& best = best_[problem];
    if (!best.exact && containment > best.containment) best = {row, false, containment};
    shared_[problem] = 0;
  }
  touched_.clear();
  rows_found_ += found_one;
}

}  // namespace antisd::inline data
