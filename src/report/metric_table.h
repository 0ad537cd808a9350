// metrics.jsonl in memory, a column a metric, and the few hundred points of it that a chart can
// show.
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

inline constexpr std::size_t kMaxColumns = 200;   // further names are left out
inline constexpr std::size_t kMaxRows = 250'000;  // likewise; 400 MB with every column
inline constexpr std::int64_t kMeanSteps = 20;    // of the bold curves, as in the paper
inline constexpr std::int64_t kMaxBuckets = 512;

struct Column {
  std::string name;
  std::vector<double> values;  // one per row; NaN where the row has no such number
};

class MetricTable {
 public:
  // False where the line is not a row of a step. A step at or before the last one takes the place
  // of that step and everything after it, as a resumed run's does.
  bool add(std::string_view line);
  void clear();

  const std::vector<std::int64_t>& steps() const { return steps_; }  // increasing
  const std::vector<Column>& columns() const { return columns_; }
  const Column* find(std::string_view name) const;
  std::int64_t last_step() const { return steps_.empty() ? 0 : steps_.back(); }
  // The first step that changed since the last call, or -1: rows were added, or took the place of
  // others.
  std::int64_t take_first_change();
  bool left_out() const { return left_out_; }

 private:
  Column* column_for(std::string_view name);
  void cut_from(std::int64_t step);

  std::vector<std::int64_t> steps_;
  std::vector<Column> columns_;
  std::size_t next_column_ = 0;  // rows name their metrics in one order
  std::vector<std::pair<std::string_view, double>> row_;
  std::int64_t first_change_ = -1;
  bool left_out_ = false;
};

// Bucket b holds the steps [b width, (b + 1) width). Of the raw values it keeps the smallest and
// the largest, in the order in which they came; of the running mean the value at its last step.
struct Buckets {
  std::vector<double> first, second, mean;  // NaN: nothing there
};

// The smallest power of two with which a run of this many steps has at most kMaxBuckets buckets.
// Powers of two, so that the buckets of a longer run are made of whole ones of a shorter run.
std::int64_t bucket_width(std::int64_t last_step);

// Buckets `from` and later. The mean is that of the finite values among the last kMeanSteps steps.
Buckets bucketed(std::span<const std::int64_t> steps, std::span<const double> values,
                 std::int64_t width, std::int64_t from);

}  // namespace antisd::inline report
