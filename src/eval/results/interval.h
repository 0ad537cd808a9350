// 95 % intervals for accuracies over a benchmark. Problems are the clusters: the samples of one
// problem resemble each other, so the interval is about which problems the benchmark happens to
// have as well as about the sampling noise. docs/evaluation.md says how they were chosen and how
// well they cover.
//
//   const std::vector<ProblemCount> problems = {{32, 32}, {3, 32}, {0, 32}};
//   const Interval interval = accuracy_interval(problems);
//   const Difference gain = paired_difference(after, before);
//
// Everything here is deterministic: nothing is resampled.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace antisd::inline eval {

struct Interval {
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
};

// The samples of one problem that could be graded.
struct ProblemCount {
  std::int64_t right = 0;
  std::int64_t graded = 0;
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(graded); }
};

// The mean over problems of a value in [0, 1], one per problem, such as pass@k: Wilson's interval
// with the effective number of problems that their spread gives, and Student's quantile with as
// many degrees as the spread had to be estimated with. Where less than kFewProblems (or all but
// that) is the sum, the end away from 0 (or 1) is at least that of values that are 0 or 1. NaN for
// no value, [0, 1] for one.
Interval mean_interval(std::span<const double> values);
inline constexpr double kFewProblems = 5;

// avg@n. By the spread, as mean_interval; where fewer than kFewProblems problems' worth of samples
// are right (or wrong) the spread says too little and a beta-binomial model stands in: for the end
// towards 0 (or 1) alone, for the other one where it is wider. Problems without a graded sample are
// left out.
Interval accuracy_interval(std::span<const ProblemCount> problems);

// The unweighted mean of independent estimates, each with its interval (lopsided ones stay so).
struct Estimate {
  double value = 0;
  Interval interval;
};
Interval average_interval(std::span<const Estimate> estimates);

// Mean over problems of accuracy(a) - accuracy(b), problem by problem. Problems that either side
// has no graded sample of are left out.
struct Difference {
  double mean = std::numeric_limits<double>::quiet_NaN();
  Interval interval;
  std::int64_t problems = 0;
};
Difference paired_difference(std::span<const ProblemCount> a, std::span<const ProblemCount> b);

// Student's 97.5 % quantile, to 1e-7; degrees >= 1, also broken or infinite.
double student_quantile(double degrees);

}  // namespace antisd::inline eval
