// metrics.jsonl: one object per step, "training/global_step" and "time" first, NaN and infinity as
// null.
//
//   MetricsFile file(run / "metrics.jsonl");
//   file.write(12, metrics);
//
// When a run is resumed, the rows after its checkpoint are cut off first:
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
// When the row was written: seconds since 1970 (UTC), to the millisecond. An amended row keeps its.
inline constexpr const char* kTimeMetric = "time";

class MetricsFile {
 public:
  // Appends to an existing file.
  explicit MetricsFile(const std::filesystem::path& path) : file_(path) {}

  // The row is in the file when this returns. RunError if writing fails; the file then still ends
  // with the row before, and the next step can try again.
  void write(std::int64_t step, const MetricSet& metrics);

  bool is_there() const { return file_.is_there(); }  // see AppendFile

 private:
  AppendFile file_;
};

struct MetricsCut {
  std::int64_t kept = 0;
  std::int64_t later = 0;       // rows of steps that will be repeated
  std::int64_t broken = 0;      // lines without a row: cut off by a kill, or damaged
  std::int64_t last_step = -1;  // of the rows that were kept; -1: none
};

// The row of a step; nothing if there is none or the file is missing.
std::optional<MetricSet> find_metrics(const std::filesystem::path& path, std::int64_t step);

// Adds values to the existing row of a step, or a new row at the end. The file is replaced
// atomically; a MetricsFile that is open on it must be reopened.
void amend_metrics(const std::filesystem::path& path, std::int64_t step, const MetricSet& more);

// Keeps only the rows up to `last_step`, each step once. The file is replaced atomically: a kill
// leaves it unchanged. A missing file counts as empty.
MetricsCut cut_metrics(const std::filesystem::path& path, std::int64_t last_step);

}  // namespace antisd::inline run
