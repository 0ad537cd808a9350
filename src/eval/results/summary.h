// The results of an evaluation: summary.json.
//
//   EvalSummary summary{.model = "Qwen3-0.6B", .step = 40, .settings = settings};
//   summary.benches.emplace_back("aime24", summarise_bench(rows, 30, 32));
//   summarise_average(summary);
//   write_summary(folder / "summary.json", summary);
//
// A figure without values is NaN here and null in the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "eval/results/interval.h"
#include "eval/results/sample_row.h"
#include "io/json.h"

namespace antisd::inline eval {

inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

struct BenchSummary {
  std::int64_t problems = 0;
  std::int64_t n = 0;        // samples of each problem
  std::int64_t samples = 0;  // in total
  double avg = kNoFigure;    // avg@n: the mean over problems of the share of right samples
  Interval avg_interval;
  std::vector<double> pass;  // pass@k for k = 1 to n, at k - 1
  std::vector<Interval> pass_interval;
  double truncated = kNoFigure;          // share of the samples that reached the length limit
  double mean_tokens = kNoFigure;        // per response
  double extraction_failed = kNoFigure;  // share of the samples that ended without an answer
  std::int64_t grader_failed = 0;        // samples without a verdict: excluded from all estimates
};

struct EvalSettings {
  double temperature = kNoFigure;
  double top_p = kNoFigure;
  std::int64_t max_sequence_tokens = 0;
  std::int64_t seed = 0;
  bool operator==(const EvalSettings&) const = default;
};

struct EvalSummary {
  std::string model;
  std::optional<std::int64_t> step;  // of training, where it is a checkpoint
  EvalSettings settings;
  std::vector<std::pair<std::string, BenchSummary>> benches;  // in the order they were named
  double average = kNoFigure;  // unweighted mean of the benchmarks' avg; NaN where one has none
  Interval average_interval;

  const BenchSummary* find(const std::string& bench) const;
};

// Problems without a graded sample are left out of avg, those with fewer than k out of pass@k.
BenchSummary summarise_bench(std::span<const SampleRow> rows, std::int64_t problems,
                             std::int64_t n);
void summarise_average(EvalSummary& summary);

Json to_json(const EvalSummary& summary);
// Missing keys give NaN. InputError for anything that is not a summary.
EvalSummary summary_from(const Json& json, const std::string& where);

void write_summary(const std::filesystem::path& file, const EvalSummary& summary);
EvalSummary read_summary(const std::filesystem::path& file);

// One evaluation for a terminal: one line per benchmark, then the average.
std::string summary_table(const EvalSummary& summary, const std::vector<std::int64_t>& k = {});

// The k of a table: the requested ones up to n, or the powers of two up to n.
std::vector<std::int64_t> shown_k(const std::vector<std::int64_t>& asked, std::int64_t n);

}  // namespace antisd::inline eval
