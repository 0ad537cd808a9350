// Which tokens have u > 0 and u < 0, over any number of responses: the paper's token analysis for
// any model.
//
//   Analysis analysis(WordList::parse(WordList::default_text(), "built in"), tokenizer);
//   for (const Inspection& inspection : inspections) analysis.add(inspection);
//   const Json summary = analysis.summary({.top = 20});
//
// Memory grows by 4 bytes per token, and with the distinct tokens of each problem. Responses may
// come in any order; those with the same id belong to one problem.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/inspect/clustered_means.h"
#include "report/inspect/inspection.h"
#include "report/inspect/word_list.h"

namespace antisd::inline report {

struct SummaryOptions {
  int top = 20;                // tokens with the highest and lowest mean u
  std::int64_t min_count = 0;  // occurrences of a listed token; 0: 5 from 1,000 tokens on, else 1
};

class Analysis {
 public:
  // Copies both.
  Analysis(WordList words, Tokenizer tokenizer);

  // Tokens whose u is not finite are counted and otherwise skipped.
  void add(const Inspection& inspection);

  std::int64_t responses() const { return responses_; }
  const WordList& words() const { return words_; }
  std::vector<std::uint8_t> kinds_of(const Inspection& inspection) const {
    return words_.kinds_of(inspection.tokens, inspection.special);
  }

  // Described in docs/inspect.md. Numbers are rounded by inspection.h's rounded().
  Json summary(const SummaryOptions& options = {}) const;

 private:
  static constexpr int kDensityBins = 20;    // a side
  static constexpr int kRelativeBins = 20;   // of a response's length
  static constexpr int kHistogramBins = 80;  // of kHistogramWidth, around 0
  static constexpr double kHistogramWidth = 0.25;

  struct Cell {
    std::int64_t count = 0;
    double sum = 0;
  };
  // Sums over tokens whose advantage is known.
  struct TermTotals {
    std::int64_t tokens = 0, flipped = 0, alone = 0;
    double term = 0, group_advantage = 0;
  };
  struct Outcomes {
    std::int64_t right = 0, wrong = 0, ungraded = 0, truncated = 0;
    double sum_right = 0, sum_wrong = 0, sum = 0;  // of u over responses
  };

  static std::int64_t kind_key(std::int64_t id, int kind) { return id * 256 + kind; }
  std::int64_t cluster_of(const std::string& problem);
  void add_token(const Inspection& inspection, std::size_t i, std::uint8_t kind,
                 std::int64_t cluster);
  Json distribution() const;
  Json histogram() const;
  Json kinds() const;
  Json top_tokens(const SummaryOptions& options, bool highest) const;
  const std::string& usual_kind(std::int64_t id) const;
  Json positions() const;
  Json relative_positions() const;
  Json density() const;
  Json term() const;

  WordList words_;
  Tokenizer tokenizer_;
  std::unordered_map<std::string, std::int64_t> problems_;  // id -> cluster
  std::int64_t responses_ = 0, not_finite_ = 0;
  std::map<std::string, std::int64_t> sources_;
  Outcomes outcomes_;
  TermTotals term_;
  std::vector<float> u_;
  ClusteredMeans all_, by_token_, by_kind_, by_position_, by_relative_position_;
  std::unordered_map<std::int64_t, std::int64_t> kinds_of_tokens_;  // by kind_key: occurrences
  std::vector<std::int64_t> negative_by_kind_;
  std::array<Cell, kDensityBins* kDensityBins> density_ = {};
};

}  // namespace antisd::inline report
