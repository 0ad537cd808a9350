// metrics.jsonl: one object per step, "training/global_step" first, NaN and infinity as null.
//
//   MetricsFile file(run / "metrics.jsonl");
//   file.write(12, metrics);
//
// After a stop, the rows behind the checkpoint that the run goes on from are cut off first:
//
//   const MetricsCut cut = cut_metrics(run / "metrics.jsonl", last_step);
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "run/metrics/append_file.h"
#include "run/metrics/metric_set.h"

namespace antisd::inline run {

inline constexpr const char* kStepMetric = "training/global_step";

class MetricsFile {
 public:
  // Goes on at the end of what is there.
  explicit MetricsFile(const std::filesystem::path& path) : file_(path) {}

  // In the file when this returns. RunError where the disk refuses; the file then still ends with
  // the row before, and the next step's may be tried.
  void write(std::int64_t step, const MetricSet& metrics);

  bool is_there() const { return file_.is_there(); }  // see AppendFile

 private:
  AppendFile file_;
};

struct MetricsCut {
  std::int64_t kept = 0;
  std::int64_t later = 0;       // rows of steps that will be done again
  std::int64_t broken = 0;      // lines that hold no row: torn by a kill, or damaged
  std::int64_t last_step = -1;  // of the rows that were kept; -1: none
};

// The row of a step; nothing where there is none. A missing file has none.
std::optional<MetricSet> find_metrics(const std::filesystem::path& path, std::int64_t step);

// Adds values to the row of a step that is written already, or, where there is none, a row at the
// end. The file is replaced at once; a MetricsFile that is open on it must be reopened.
void amend_metrics(const std::filesystem::path& path, std::int64_t step, const MetricSet& more);

// Leaves the rows up to `last_step`, each step once, and nothing else. The file is replaced at
// once: a kill in between leaves it as it was. A missing file is an empty one.
MetricsCut cut_metrics(const std::filesystem::path& path, std::int64_t last_step);

}  // namespace antisd::inline run
