// How a step names its files: "step-000010", for checkpoints, evaluations and dumps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace antisd::inline io {

std::string step_name(std::int64_t step);
// Nothing for a name that step_name() would not give.
std::optional<std::int64_t> step_of_name(std::string_view name);

}  // namespace antisd::inline io
