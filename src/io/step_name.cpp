#include "io/step_name.h"

#include <charconv>

#include <fmt/format.h>

namespace antisd::inline io {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kDigits = 6;

}  // namespace

std::string step_name(std::int64_t step) {
  return fmt::format("step-{:06}", step);
}

std::optional<std::int64_t> step_of_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || digits.size() < kDigits || step < 0 || step_name(step) != name)
    return std::nullopt;
  return step;
}

}  // namespace antisd::inline io
