// 95 % intervals for accuracies over a benchmark. Problems are the clusters: the samples of one
// problem are correlated, so the interval covers both the choice of problems and the sampling
// noise. docs/evaluation.md explains the choice and its measured coverage.
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
// with the effective number of problems from their variance, and Student's quantile with as many
// degrees of freedom as that variance was estimated with. If the sum is below kFewProblems (or that
// close to all), the end away from 0 (or 1) is at least that of values 0 or 1. NaN for no value,
// [0, 1] for one.
Interval mean_interval(std::span<const double> values);
inline constexpr double kFewProblems = 5;

// avg@n. From the variance, as mean_interval. If fewer than kFewProblems problems' worth of samples
// are right (or wrong), the variance says too little and a beta-binomial model is used: for the end
// towards 0 (or 1) by itself, for the other end if it is wider. Problems without a graded sample
// are left out.
Interval accuracy_interval(std::span<const ProblemCount> problems);

// The unweighted mean of independent estimates, each with its interval (asymmetric ones stay so).
struct Estimate {
  double value = 0;
  Interval interval;
};
Interval average_interval(std::span<const Estimate> estimates);

// Mean over problems of accuracy(a) - accuracy(b). Problems for which either side has no graded
// sample are left out.
struct Difference {
  double mean = std::numeric_limits<double>::quiet_NaN();
  Interval interval;
  std::int64_t problems = 0;
};
Difference paired_difference(std::span<const ProblemCount> a, std::span<const ProblemCount> b);

// Student's 97.5 % quantile, to 1e-7; degrees >= 1, also fractional or infinite.
double student_quantile(double degrees);

}  // namespace antisd::inline eval
