// A TensorBoard event file with scalars.
//
//   TensorboardFile file(run, /*first_step=*/0);
//   file.write(12, metrics);
//
// A resumed run writes its own file beside the older ones. It starts with a mark at `first_step`,
// which makes TensorBoard drop the older files' values of that step and later ones.
#pragma once

#include <cstdint>
#include <filesystem>

#include "run/metrics/append_file.h"
#include "run/metrics/metric_set.h"

namespace antisd::inline run {

class TensorboardFile {
 public:
  // Creates events.out.tfevents.TIME.HOST.PID.NUMBER in `folder`. RunError.
  TensorboardFile(const std::filesystem::path& folder, std::int64_t first_step);

  // Like MetricsFile::write, but NaN is a value.
  void write(std::int64_t step, const MetricSet& metrics);

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace antisd::inline run
