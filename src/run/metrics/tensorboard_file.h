// A TensorBoard event file with scalars alone.
//
//   TensorboardFile file(run, /*first_step=*/0);
//   file.write(12, metrics);
//
// A run that goes on writes a file of its own beside the older ones. It opens with a mark at
// `first_step`, at which TensorBoard drops what the older files say about that step and later ones.
#pragma once

#include <cstdint>
#include <filesystem>

#include "run/metrics/append_file.h"
#include "run/metrics/metric_set.h"

namespace antisd::inline run {

class TensorboardFile {
 public:
  // Makes events.out.tfevents.TIME.HOST.PID.NUMBER in `folder`. RunError.
  TensorboardFile(const std::filesystem::path& folder, std::int64_t first_step);

  // As MetricsFile::write. NaN is a value there.
  void write(std::int64_t step, const MetricSet& metrics);

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace antisd::inline run
