// metrics.jsonl in memory, one column per metric, and the few hundred points that a chart can show.
//
//   MetricTable table;
//   table.add(R"({"training/global_step":1,"actor/lr":1e-6})");
//   const Buckets points = bucketed(table.steps(), table.find("actor/lr")->values, width, 0);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline report {

inline constexpr std::size_t kMaxColumns = 200;   // further names are dropped
inline constexpr std::size_t kMaxRows = 250'000;  // likewise; 400 MB with every column
inline constexpr std::int64_t kMeanSteps = 20;    // of the bold curves, as in the paper
inline constexpr std::int64_t kMaxBuckets = 512;

struct Column {
  std::string name;
  std::vector<double> values;  // one per row; NaN if the row has no such number
};

class MetricTable {
 public:
  // False if the line is not a step's row. A step at or before the last one replaces that step and
  // all later ones, as in a resumed run.
  bool add(std::string_view line);
  void clear();

  const std::vector<std::int64_t>& steps() const { return steps_; }  // increasing
  const std::vector<Column>& columns() const { return columns_; }
  const Column* find(std::string_view name) const;
  std::int64_t last_step() const { return steps_.empty() ? 0 : steps_.back(); }
  // The first step that changed since the last call, or -1: rows were added or replaced.
  std::int64_t take_first_change();
  bool left_out() const { return left_out_; }

 private:
  Column* column_for(std::string_view name);
  void cut_from(std::int64_t step);

  std::vector<std::int64_t> steps_;
  std::vector<Column> columns_;
  std::size_t next_column_ = 0;  // rows list their metrics in the same order
  std::vector<std::pair<std::string_view, double>> row_;
  std::int64_t first_change_ = -1;
  bool left_out_ = false;
};

// Bucket b holds the steps [b width, (b + 1) width). It keeps the smallest and the largest raw
// value, in their order, and the running mean at its last step.
struct Buckets {
  std::vector<double> first, second, mean;  // NaN: no value
};

// The smallest power of two for which a run of this many steps has at most kMaxBuckets buckets.
// Powers of two, so that a longer run's buckets are unions of a shorter run's.
std::int64_t bucket_width(std::int64_t last_step);

// Buckets from `from` on. The mean is over the finite values of the last kMeanSteps steps.
Buckets bucketed(std::span<const std::int64_t> steps, std::span<const double> values,
                 std::int64_t width, std::int64_t from);

}  // namespace antisd::inline report
