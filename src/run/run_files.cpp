#include "run/run_files.h"

#include <charconv>

#include <fmt/format.h>

namespace antisd::inline run {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::size_t kStepDigits = 6;
constexpr std::string_view kRowsSuffix = ".jsonl";

}  // namespace

std::string step_name(std::int64_t step) {
  return fmt::format("step-{:06}", step);
}

std::optional<std::int64_t> step_of_name(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kStepPrefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || digits.size() < kStepDigits || step < 0 || step_name(step) != name)
    return std::nullopt;
  return step;
}

std::string rollouts_file(std::int64_t step) {
  return fmt::format("{}/{}{}", kRolloutsFolder, step_name(step), kRowsSuffix);
}

std::string failure_file(std::int64_t step) {
  return fmt::format("failed/{}{}", step_name(step), kRowsSuffix);
}

std::string evaluation_folder(std::int64_t step) {
  return fmt::format("{}/{}", kEvaluationsFolder, step_name(step));
}

std::optional<std::int64_t> step_of_rollouts(std::string_view name) {
  if (!name.ends_with(kRowsSuffix)) return std::nullopt;
  name.remove_suffix(kRowsSuffix.size());
  return step_of_name(name);
}

bool holds_a_run(const std::filesystem::path& directory) {
  return std::filesystem::exists(directory / kMetricsFile) ||
         std::filesystem::exists(directory / kCheckpointsFolder);
}

}  // namespace antisd::inline run
